// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>

#include <vector>

namespace klineage {
struct Workspace;
}

namespace klineage::ui {

/// What is wrong or was recovered: in the workspace's files, and in the window itself.
class ProblemsModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum class Severity { Error, Notice };
    enum Column { WhereColumn, MessageColumn, ColumnCount };
    enum Role { SeverityRole = Qt::UserRole, DetailRole };

    struct Problem {
        Severity severity = Severity::Error;
        QString where; ///< "gemm/sm90", "tma-load"; empty: the workspace or the window
        QString message;
        QString detail; ///< a longer explanation; may be empty
        friend bool operator==(const Problem &, const Problem &) = default;
    };

    using QAbstractTableModel::QAbstractTableModel;

    /// Replaces what was said about the workspace.
    void setWorkspace(const Workspace &workspace);
    /// Adds something about the window; said once only.
    void add(const Problem &problem);

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<Problem> m_own;
    std::vector<Problem> m_problems; ///< m_own first
};

} // namespace klineage::ui
