// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/compare/comparefilter.h"

#include <QAbstractTableModel>
#include <QSet>

namespace klineage::ui {

/// How runs are laid beside each other: what is kept from one start to the next.
struct CompareView {
    QStringList columns =
        defaultCompareColumns(); ///< ids, in their order; those that no run has are passed over
    QString group;               ///< id of a column; empty: no groups
    QString sort = QStringLiteral("created");
    bool descending = true;
    QString filter;
    bool onlyDifferent = false; ///< columns that have the same value in all rows are away
    QSet<QString> folded;       ///< groups whose runs are away

    friend bool operator==(const CompareView &, const CompareView &) = default;
};

/// Runs as a table: those that the filter takes, sorted, with a row above each group. Columns and rows are made anew when the view or the
/// runs change; what was selected is found again by its key.
class CompareModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Role {
        KeyRole = Qt::UserRole, ///< of the run; of a group its value after "group:"
        GroupRole               ///< true of the row above a group
    };

    using QAbstractTableModel::QAbstractTableModel;

    void setRuns(std::vector<ComparedRun> runs);
    void setView(const CompareView &view);
    [[nodiscard]] const CompareView &view() const { return m_view; }
    [[nodiscard]] const std::vector<ComparedRun> &runs() const { return m_runs; }
    [[nodiscard]] const std::vector<CompareColumn> &columns() const
    {
        return m_all;
    } ///< all that could be shown
    [[nodiscard]] const CompareColumn &column(int column) const
    {
        return *m_shown[static_cast<std::size_t>(column)];
    }
    [[nodiscard]] int columnOf(const QString &id) const;   ///< -1: it is not shown
    [[nodiscard]] int rowOf(const QString &key) const;     ///< -1: it is not shown
    [[nodiscard]] const ComparedRun *runAt(int row) const; ///< nullptr: a group
    [[nodiscard]] int shownRuns() const { return static_cast<int>(m_accepted.size()); } ///< folded ones, too
    [[nodiscard]] double shownDollars() const;
    [[nodiscard]] QString filterProblem() const { return m_filterProblem; }

    /// All runs that the filter takes, in their order, with all digits: the group's column first, then those that are shown; beside a
    /// speedup what it compares with and whether it was paired.
    [[nodiscard]] QString csv() const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    /// The view's sort, as a click on a header asks for it.
    void sort(int column, Qt::SortOrder order) override;

signals:
    void viewChanged(); ///< by sort()

private:
    struct Group {
        QString value; ///< of its column; empty: runs without one
        std::vector<const ComparedRun *> runs;
    };
    struct Row {
        const Group *group = nullptr; ///< of a row above a group
        const ComparedRun *run = nullptr;
    };

    void rebuild();
    void choose();
    void chooseColumns();
    void arrange();
    [[nodiscard]] bool isBefore(const QVariant &a, const QVariant &b) const;
    [[nodiscard]] QString commonReference(const CompareColumn &column) const;
    [[nodiscard]] QVariant groupData(const Row &row, int column, int role) const;
    [[nodiscard]] QVariant runData(const ComparedRun &run, int column, int role) const;

    CompareView m_view;
    std::vector<ComparedRun> m_runs;
    std::vector<CompareColumn> m_all;
    std::vector<const CompareColumn *> m_shown;
    std::vector<QString> m_references; ///< of each shown speedup; empty: they differ, or it is none
    std::vector<const ComparedRun *> m_accepted;
    std::vector<Group> m_groups;
    std::vector<Row> m_rows;
    QString m_filterProblem;
};

} // namespace klineage::ui
