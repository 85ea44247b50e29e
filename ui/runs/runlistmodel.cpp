// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runlistmodel.h"

#include "ui/style/format.h"

#include <algorithm>

namespace klineage::ui {

namespace {

bool isAmong(const std::vector<RunEntryPtr> &runs, const QString &id)
{
    return std::any_of(runs.begin(), runs.end(), [&](const RunEntryPtr &run) { return run->id() == id; });
}

bool isNumber(int column)
{
    return column == RunListModel::StepsColumn || column == RunListModel::BestColumn
           || column == RunListModel::CostColumn;
}

} // namespace

RunListModel::RunListModel(RunStore *store, QObject *parent)
    : QAbstractTableModel(parent)
    , m_store(store)
    , m_runs(store->runs())
{
    connect(store, &RunStore::changed, this, &RunListModel::update);
}

/// Rows that stay keep their index, so that views keep what is selected in them.
void RunListModel::update()
{
    const std::vector<RunEntryPtr> &now = m_store->runs();
    for (int row = rowCount() - 1; row >= 0; --row) {
        if (isAmong(now, m_runs[static_cast<std::size_t>(row)]->id()))
            continue;
        beginRemoveRows({}, row, row);
        m_runs.erase(m_runs.begin() + row);
        endRemoveRows();
    }
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (isAmong(m_runs, now[i]->id()))
            continue;
        const int row = static_cast<int>(std::min(i, m_runs.size()));
        beginInsertRows({}, row, row);
        m_runs.insert(m_runs.begin() + row, now[i]);
        endInsertRows();
    }
    m_runs = now;
    if (!m_runs.empty())
        emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int RunListModel::rowOf(const QString &id) const
{
    const auto found =
        std::find_if(m_runs.begin(), m_runs.end(), [&](const RunEntryPtr &run) { return run->id() == id; });
    return found == m_runs.end() ? -1 : static_cast<int>(found - m_runs.begin());
}

int RunListModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_runs.size());
}

int RunListModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant RunListModel::text(const RunEntry &run, int column)
{
    const run::Settings &settings = run.record.settings;
    switch (column) {
    case StateColumn: {
        const StatusStyle style = runStateStyle(run);
        return QStringLiteral("%1 %2").arg(style.glyph, style.word);
    }
    case SubjectColumn:
        return QString::fromStdString(settings.subject.empty() ? settings.workload : settings.subject);
    case PolicyColumn:
        return policyOf(settings);
    case AuthorColumn:
        return QString::fromStdString(settings.model.empty() ? settings.provider
                                                             : settings.provider + " " + settings.model);
    case StepsColumn:
        return settings.maxSteps > 0
                   ? QStringLiteral("%1/%2").arg(run.summary.questions).arg(settings.maxSteps)
                   : QString::number(run.record.steps.size());
    case BestColumn:
        return run.summary.best > 0 ? formatSpeedup(run.summary.best) : QStringLiteral("–");
    case CostColumn:
        return QStringLiteral("%1 / $%2")
            .arg(formatDollars(run.spentDollars), QString::number(settings.capDollars, 'g', 6));
    default:
        return run.id();
    }
}

QVariant RunListModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const RunEntry &run = *m_runs[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return text(run, index.column());
    case Qt::ToolTipRole:
        if (index.column() == StateColumn && !run.record.ending.code.empty())
            return QString::fromStdString(run.record.ending.text());
        if (index.column() == StepsColumn)
            return tr("%1 questions: %2 valid, %3 failed, %4 wrappers")
                .arg(run.summary.questions)
                .arg(run.summary.valid)
                .arg(run.summary.failed)
                .arg(run.summary.wrappers);
        if (index.column() == BestColumn && !run.summary.reference.name.empty())
            return tr("against %1").arg(QString::fromStdString(run.summary.reference.name));
        return text(run, index.column());
    case Qt::ForegroundRole:
        if (index.column() == StateColumn)
            return toneColor(runStateStyle(run).tone);
        return {};
    case Qt::TextAlignmentRole:
        return static_cast<int>(Qt::AlignVCenter
                                | (isNumber(index.column()) ? Qt::AlignRight : Qt::AlignLeft));
    case IdRole:
        return run.id();
    default:
        return {};
    }
}

QVariant RunListModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter | (isNumber(section) ? Qt::AlignRight : Qt::AlignLeft));
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case StateColumn:
        return tr("State");
    case SubjectColumn:
        return tr("From");
    case PolicyColumn:
        return tr("Kind");
    case AuthorColumn:
        return tr("Author");
    case StepsColumn:
        return tr("Steps");
    case BestColumn:
        return tr("Best");
    case CostColumn:
        return tr("Spent / cap");
    default:
        return tr("Run");
    }
}

} // namespace klineage::ui
