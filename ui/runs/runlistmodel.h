// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/runstore.h"

#include <QAbstractTableModel>

namespace klineage::ui {

/// The runs of the workspace, newest first.
class RunListModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column {
        StateColumn,
        SubjectColumn,
        PolicyColumn,
        BestColumn,
        CostColumn,
        StepsColumn,
        AuthorColumn,
        NameColumn,
        ColumnCount
    };
    enum Role { IdRole = Qt::UserRole };

    explicit RunListModel(RunStore *store, QObject *parent = nullptr);

    [[nodiscard]] int rowOf(const QString &id) const; ///< -1: none
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    void update();
    [[nodiscard]] static QVariant text(const RunEntry &run, int column);

    RunStore *m_store;
    std::vector<RunEntryPtr> m_runs;
};

} // namespace klineage::ui
