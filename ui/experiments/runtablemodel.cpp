// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/runtablemodel.h"

#include "ui/runs/runentry.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <algorithm>

namespace klineage::ui {

namespace {

using C = RunTableModel;

bool isRunNumber(int column)
{
    return column == C::SeedColumn || column == C::RootSpeedupColumn || column == C::FinalColumn
           || column == C::BestColumn || column == C::QuestionsColumn || column == C::OutcomesColumn
           || column == C::CostColumn;
}

QString speedupOrDash(double speedup)
{
    return speedup > 0 ? formatSpeedup(speedup) : QStringLiteral("–");
}

std::size_t placeIn(const std::vector<std::string> &names, const std::string &name)
{
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

} // namespace

RunTableModel::RunTableModel(QObject *parent)
    : QAbstractTableModel(parent)
{}

void RunTableModel::show(const ExperimentEntryPtr &experiment, const QString &root)
{
    std::vector<run::CellResult> rows;
    if (experiment) {
        for (const run::CellResult &cell : experiment->results.cells) {
            if (root.isEmpty() || cell.cell.root == root.toStdString())
                rows.push_back(cell);
        }
        const run::Experiment &file = experiment->experiment;
        std::stable_sort(rows.begin(), rows.end(), [&](const run::CellResult &a, const run::CellResult &b) {
            return std::pair(placeIn(file.roots, a.cell.root), placeIn(file.policies, a.cell.policy))
                   < std::pair(placeIn(file.roots, b.cell.root), placeIn(file.policies, b.cell.policy));
        });
    }
    // While runs grow the rows stay, and with them what is selected.
    const bool sameShape = std::equal(
        rows.begin(), rows.end(), m_rows.begin(), m_rows.end(),
        [](const run::CellResult &a, const run::CellResult &b) { return a.cell.runId == b.cell.runId; });
    if (!sameShape)
        beginResetModel();
    m_rows = std::move(rows);
    if (!sameShape)
        endResetModel();
    else if (!m_rows.empty())
        emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int RunTableModel::rowOf(const QString &run) const
{
    const auto found = std::find_if(m_rows.begin(), m_rows.end(), [&](const run::CellResult &cell) {
        return cell.cell.runId == run.toStdString();
    });
    return found == m_rows.end() ? -1 : static_cast<int>(found - m_rows.begin());
}

int RunTableModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int RunTableModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString RunTableModel::text(const run::CellResult &cell, int column)
{
    const run::Summary &summary = cell.summary;
    switch (column) {
    case RootColumn:
        return QString::fromStdString(cell.cell.root);
    case PolicyColumn:
        return QString::fromStdString(cell.cell.policy);
    case SeedColumn:
        return QString::number(cell.cell.seed);
    case StateColumn: {
        const StatusStyle style = cellStyle(cell);
        return QStringLiteral("%1 %2").arg(style.glyph, style.word);
    }
    case ReferenceColumn:
        return QString::fromStdString(summary.reference.name);
    case RootSpeedupColumn:
        return speedupOrDash(summary.rootSpeedup);
    case FinalColumn:
        return speedupOrDash(summary.finalSpeedup) + (summary.audited ? QStringLiteral(" ◇") : QString());
    case BestColumn:
        return speedupOrDash(summary.best);
    case QuestionsColumn:
        return QString::number(summary.questions);
    case OutcomesColumn:
        return QStringLiteral("● %1  △ %2  × %3")
            .arg(summary.valid)
            .arg(summary.failed)
            .arg(summary.wrappers);
    case CostColumn:
        return formatDollars(summary.dollars);
    default:
        return QString::fromStdString(cell.ending.code).replace(QLatin1Char('_'), QLatin1Char(' '));
    }
}

QString RunTableModel::tip(const run::CellResult &cell, int column)
{
    switch (column) {
    case StateColumn:
    case EndingColumn:
        return cell.ending == run::Ending() ? text(cell, StateColumn)
                                            : QString::fromStdString(cell.ending.text());
    case FinalColumn:
        if (cell.summary.audited)
            return tr("The candidate was timed once more at the end of the run (◇): this is that figure.");
        return tr("The best candidate's speedup; it was not timed once more at the end.");
    case OutcomesColumn:
        return tr("%1 valid, %2 failed, %3 wrappers of a library")
            .arg(cell.summary.valid)
            .arg(cell.summary.failed)
            .arg(cell.summary.wrappers);
    case CostColumn:
        return tr("%1, of which %2 for reading cards")
            .arg(formatDollars(cell.summary.dollars), formatDollars(cell.summary.loadDollars));
    default:
        return QString::fromStdString(cell.cell.runId);
    }
}

QVariant RunTableModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const run::CellResult &cell = m_rows[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return text(cell, index.column());
    case Qt::ToolTipRole:
        return tip(cell, index.column());
    case Qt::FontRole:
        return index.column() == FinalColumn ? QVariant(strongFont()) : QVariant();
    case Qt::ForegroundRole:
        if (index.column() == StateColumn)
            return toneColor(cellStyle(cell).tone);
        return index.column() == RootColumn ? QVariant(Theme::current().dim) : QVariant();
    case Qt::TextAlignmentRole:
        return static_cast<int>(Qt::AlignVCenter
                                | (isRunNumber(index.column()) ? Qt::AlignRight : Qt::AlignLeft));
    case IdRole:
        return QString::fromStdString(cell.cell.runId);
    default:
        return {};
    }
}

QVariant RunTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter | (isRunNumber(section) ? Qt::AlignRight : Qt::AlignLeft));
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case RootColumn:
        return tr("Root");
    case PolicyColumn:
        return tr("Policy");
    case SeedColumn:
        return tr("Seed");
    case StateColumn:
        return tr("State");
    case ReferenceColumn:
        return tr("Reference");
    case RootSpeedupColumn:
        return tr("Root's");
    case FinalColumn:
        return tr("Final");
    case BestColumn:
        return tr("Best");
    case QuestionsColumn:
        return tr("Questions");
    case OutcomesColumn:
        return tr("Candidates");
    case CostColumn:
        return tr("Cost");
    default:
        return tr("Ending");
    }
}

} // namespace klineage::ui
