// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/runstore.h"

#include <QAbstractTableModel>

namespace klineage::ui {

/// The steps of the store's current run, in their order.
class RunStepModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column {
        NumberColumn,
        ActionColumn,
        OutcomeColumn,
        SpeedupColumn,
        BestColumn,
        DollarsColumn,
        TitleColumn,
        ColumnCount
    };
    enum Role { NumberRole = Qt::UserRole };

    explicit RunStepModel(RunStore *store, QObject *parent = nullptr);

    [[nodiscard]] int rowOf(int number) const; ///< -1: none
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    void reset();
    void grow();

    RunStore *m_store;
    QString m_run;
    std::vector<run::StepRecord> m_steps;
};

} // namespace klineage::ui
