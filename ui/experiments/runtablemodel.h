// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/experimententry.h"

#include <QAbstractTableModel>

namespace klineage::ui {

/// A line a run of an experiment: root by root, policies together, seeds in order.
class RunTableModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column {
        RootColumn,
        PolicyColumn,
        SeedColumn,
        StateColumn,
        FinalColumn,
        BestColumn,
        CostColumn,
        QuestionsColumn,
        OutcomesColumn,
        RootSpeedupColumn,
        ReferenceColumn,
        EndingColumn,
        ColumnCount
    };
    enum Role { IdRole = Qt::UserRole };

    explicit RunTableModel(QObject *parent = nullptr);

    /// root empty: all roots. nullptr empties the table.
    void show(const ExperimentEntryPtr &experiment, const QString &root);
    [[nodiscard]] const run::CellResult &row(int row) const { return m_rows[static_cast<std::size_t>(row)]; }
    [[nodiscard]] int rowOf(const QString &run) const; ///< -1: none
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] static QString text(const run::CellResult &cell, int column);
    [[nodiscard]] static QString tip(const run::CellResult &cell, int column);

    std::vector<run::CellResult> m_rows;
};

} // namespace klineage::ui
