// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/problemsmodel.h"

#include "core/workspace/workspace.h"
#include "ui/style/status.h"

#include <algorithm>

namespace klineage::ui {

namespace {

using Problem = ProblemsModel::Problem;
using Severity = ProblemsModel::Severity;

std::vector<Problem> problemsOf(const Workspace &workspace)
{
    std::vector<Problem> problems;
    for (const Error &error : workspace.problems)
        problems.push_back({Severity::Error,
                            {},
                            QString::fromStdString(error.message),
                            QString::fromStdString(error.detail)});
    for (const lineage::Lineage &lineage : workspace.lineages) {
        for (const std::string &notice : lineage.notices)
            problems.push_back({Severity::Notice,
                                QString::fromStdString(lineage.key()),
                                QString::fromStdString(notice),
                                {}});
    }
    for (const skills::CardRecord &card : workspace.cards) {
        for (const std::string &notice : card.notices)
            problems.push_back({Severity::Notice,
                                QString::fromStdString(card.card.name),
                                QString::fromStdString(notice),
                                {}});
    }
    return problems;
}

} // namespace

void ProblemsModel::setWorkspace(const Workspace &workspace)
{
    std::vector<Problem> problems = m_own;
    const std::vector<Problem> found = problemsOf(workspace);
    problems.insert(problems.end(), found.begin(), found.end());
    if (problems == m_problems)
        return;
    beginResetModel();
    m_problems = std::move(problems);
    endResetModel();
}

void ProblemsModel::add(const Problem &problem)
{
    if (std::find(m_own.begin(), m_own.end(), problem) != m_own.end())
        return;
    const int at = static_cast<int>(m_own.size());
    beginInsertRows({}, at, at);
    m_own.push_back(problem);
    m_problems.insert(m_problems.begin() + at, problem);
    endInsertRows();
}

int ProblemsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_problems.size());
}

int ProblemsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ProblemsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const Problem &problem = m_problems[static_cast<std::size_t>(index.row())];
    const bool isError = problem.severity == Severity::Error;
    switch (role) {
    case Qt::DisplayRole:
        if (index.column() == MessageColumn)
            return problem.message;
        return QString((isError ? QStringLiteral("✗  ") : QStringLiteral("!  "))
                       + (problem.where.isEmpty() ? tr("workspace") : problem.where));
    case Qt::ForegroundRole:
        return index.column() == WhereColumn ? QVariant(toneColor(isError ? Tone::Bad : Tone::Warn))
                                             : QVariant();
    case Qt::ToolTipRole:
        return problem.detail.isEmpty() ? problem.message
                                        : problem.message + QLatin1Char('\n') + problem.detail;
    case SeverityRole:
        return static_cast<int>(problem.severity);
    case DetailRole:
        return problem.detail;
    default:
        return {};
    }
}

QVariant ProblemsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(Qt::AlignLeft | Qt::AlignVCenter));
    if (role != Qt::DisplayRole)
        return {};
    return section == WhereColumn ? tr("where") : tr("what");
}

} // namespace klineage::ui
