// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/experimententry.h"

#include <QAbstractTableModel>

namespace klineage::ui {

/// What a delegate draws of a row: final speedups of the runs on one scale for the whole table.
struct Spread {
    std::vector<double> finals; ///< of the successes
    double mean = 0;            ///< their geometric mean; 0: none
    double left = 0;            ///< of the scale, as a logarithm
    double right = 1;
    int failures = 0;
    std::size_t series = 0; ///< of the policy
};

/// Root × policy: the geometric mean over successes alone, and what was not counted in it beside it.
class PolicyTableModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column {
        RootColumn,
        PolicyColumn,
        GoalColumn, ///< hidden without goals, as the next
        GainColumn,
        MeanColumn,
        AgainstColumn,
        CorrectColumn, ///< the measures of papers: core/run/experiment/measures.h
        Fast1Column,
        Fast2Column,
        AmsrColumn,
        SpreadColumn,
        SuccessColumn,
        FailureColumn,
        UnfinishedColumn,
        CostColumn,
        ColumnCount
    };
    enum Role { SpreadRole = Qt::UserRole, GroupRole }; ///< GroupRole: the first row of a root

    explicit PolicyTableModel(QObject *parent = nullptr);

    /// root empty: all roots. nullptr empties the table.
    void show(const ExperimentEntryPtr &experiment, const QString &root);
    [[nodiscard]] const run::PolicyResult &row(int row) const
    {
        return m_rows[static_cast<std::size_t>(row)];
    }
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    void measure();
    [[nodiscard]] const run::ArmResult *arm(int row) const;
    [[nodiscard]] const run::Measures *measures(int row) const;
    [[nodiscard]] QString armTip(const run::ArmResult &arm, int column) const;
    [[nodiscard]] QString text(int row, int column) const;
    [[nodiscard]] QString tip(int row, int column) const;
    /// Geometric mean relative to that of the first policy on the same root; 0: one of them has no success.
    [[nodiscard]] double against(int row) const;

    ExperimentEntryPtr m_experiment;
    std::vector<run::PolicyResult> m_rows;
    std::vector<Spread> m_spreads;
};

} // namespace klineage::ui

Q_DECLARE_METATYPE(klineage::ui::Spread)
