// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runstepmodel.h"

#include "ui/style/format.h"

#include <algorithm>

namespace klineage::ui {

namespace {

bool isFigure(int column)
{
    return column == RunStepModel::NumberColumn || column == RunStepModel::SpeedupColumn
           || column == RunStepModel::BestColumn || column == RunStepModel::DollarsColumn;
}

QString speedupOrDash(double speedup)
{
    return speedup > 0 ? formatSpeedup(speedup) : QStringLiteral("–");
}

} // namespace

RunStepModel::RunStepModel(RunStore *store, QObject *parent)
    : QAbstractTableModel(parent)
    , m_store(store)
{
    connect(store, &RunStore::currentChanged, this, &RunStepModel::reset);
    connect(store, &RunStore::changed, this, &RunStepModel::grow);
    reset();
}

void RunStepModel::reset()
{
    const RunEntryPtr run = m_store->current();
    beginResetModel();
    m_run = m_store->currentId();
    m_steps = run ? run->record.steps : std::vector<run::StepRecord>();
    endResetModel();
}

/// A step that was written is never changed: only new ones are added.
void RunStepModel::grow()
{
    const RunEntryPtr run = m_store->current();
    if (m_store->currentId() != m_run || !run || run->record.steps.size() < m_steps.size()) {
        reset();
        return;
    }
    const std::vector<run::StepRecord> &now = run->record.steps;
    if (now.size() == m_steps.size())
        return;
    beginInsertRows({}, rowCount(), static_cast<int>(now.size()) - 1);
    m_steps = now;
    endInsertRows();
}

int RunStepModel::rowOf(int number) const
{
    const auto found = std::find_if(m_steps.begin(), m_steps.end(),
                                    [number](const run::StepRecord &step) { return step.number == number; });
    return found == m_steps.end() ? -1 : static_cast<int>(found - m_steps.begin());
}

int RunStepModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_steps.size());
}

int RunStepModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant RunStepModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const run::StepRecord &step = m_steps[static_cast<std::size_t>(index.row())];
    const StatusStyle outcome = outcomeStyle(step.outcome);
    switch (role) {
    case NumberRole:
        return step.number;
    case Qt::ToolTipRole:
        return QString::fromStdString(step.reason.empty() ? step.title : step.reason);
    case Qt::ForegroundRole:
        if (index.column() == OutcomeColumn)
            return toneColor(outcome.tone);
        return {};
    case Qt::TextAlignmentRole:
        return static_cast<int>(Qt::AlignVCenter
                                | (isFigure(index.column()) ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::DisplayRole:
        break;
    default:
        return {};
    }
    switch (index.column()) {
    case NumberColumn:
        return step.number;
    case ActionColumn:
        return QString::fromStdString(step.action);
    case OutcomeColumn:
        return QStringLiteral("%1 %2").arg(outcome.glyph, outcome.word);
    case SpeedupColumn:
        return speedupOrDash(step.speedup);
    case BestColumn:
        return speedupOrDash(step.best);
    case DollarsColumn:
        return formatDollars(step.totalDollars);
    default:
        return QString::fromStdString(step.title);
    }
}

QVariant RunStepModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter | (isFigure(section) ? Qt::AlignRight : Qt::AlignLeft));
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case NumberColumn:
        return tr("#");
    case ActionColumn:
        return tr("Action");
    case OutcomeColumn:
        return tr("Outcome");
    case SpeedupColumn:
        return tr("Speedup");
    case BestColumn:
        return tr("Best");
    case DollarsColumn:
        return tr("Total");
    default:
        return tr("What");
    }
}

} // namespace klineage::ui
