// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/jobmodel.h"

#include "ui/runs/verdicttext.h"
#include "ui/style/format.h"

#include <algorithm>

namespace klineage::ui {

namespace {

QString statusText(const JobModel::Entry &entry)
{
    switch (entry.status) {
    case JobModel::Status::Running:
        return entry.doing;
    case JobModel::Status::Failed:
        return JobModel::tr("gate failed");
    case JobModel::Status::Stopped:
        return JobModel::tr("stopped");
    case JobModel::Status::Done:
        return QString::fromLatin1(gate::toString(entry.trial->verdict.status))
            .replace(QLatin1Char('_'), QLatin1Char(' '));
    }
    return {};
}

QString latencyText(const JobModel::Entry &entry)
{
    if (!entry.trial || entry.trial->latencyNs.value <= 0)
        return {};
    return formatQuantity(entry.trial->latencyNs.value, QStringLiteral("ns"));
}

QString speedupText(const JobModel::Entry &entry)
{
    const gate::Comparison *parent = entry.trial ? entry.trial->comparison("parent") : nullptr;
    return parent ? formatSpeedup(parent->speedup.value) : QString();
}

} // namespace

JobModel::JobModel(GateController *controller, QObject *parent)
    : QAbstractTableModel(parent)
{
    connect(controller, &GateController::started, this, [this](const GateJob &job) {
        beginInsertRows({}, 0, 0);
        m_entries.insert(m_entries.begin(), Entry{job,
                                                  QDateTime::currentDateTime(),
                                                  Status::Running,
                                                  progressWord(),
                                                  tr("Starting the gate…"),
                                                  {},
                                                  {}});
        endInsertRows();
    });
    connect(controller, &GateController::progressed, this,
            [this](quint64 id, const gate::GateProgress &progress) {
                update(id, [&](Entry &entry) {
                    entry.doing = progressWord(progress);
                    entry.message = progressSentence(progress);
                });
            });
    connect(controller, &GateController::finished, this,
            [this](quint64 id, const gate::Trial &trial, const QString &recordedRow, const QString &note) {
                update(id, [&](Entry &entry) {
                    entry.status = Status::Done;
                    entry.trial = trial;
                    entry.recordedRow = recordedRow;
                    entry.message = QString::fromStdString(trial.verdict.message);
                    if (!note.isEmpty())
                        entry.message += QLatin1Char(' ') + note;
                });
            });
    connect(controller, &GateController::failed, this, [this](quint64 id, const QString &message) {
        update(id, [&](Entry &entry) {
            entry.status = Status::Failed;
            entry.message = message;
        });
    });
    connect(controller, &GateController::stopped, this, [this](quint64 id) {
        update(id, [&](Entry &entry) {
            entry.status = Status::Stopped;
            entry.message = tr("Stopped before a verdict; nothing was recorded.");
        });
    });
}

void JobModel::update(quint64 id, const std::function<void(Entry &)> &change)
{
    const auto found = std::find_if(m_entries.begin(), m_entries.end(),
                                    [&](const Entry &entry) { return entry.job.id == id; });
    if (found == m_entries.end())
        return;
    change(*found);
    const int row = static_cast<int>(found - m_entries.begin());
    emit dataChanged(index(row, 0), index(row, ColumnCount - 1));
}

QString JobModel::detail(const Entry &entry)
{
    QStringList lines = {entry.message};
    if (!entry.trial)
        return lines.join(QLatin1Char('\n'));
    lines << verdictDetails(entry.trial->verdict);
    return lines.join(QLatin1Char('\n'));
}

int JobModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}

int JobModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant JobModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const Entry &entry = m_entries[static_cast<std::size_t>(index.row())];
    if (role == StatusRole)
        return statusText(entry);
    if (role == DetailRole)
        return detail(entry);
    if (role == Qt::TextAlignmentRole) {
        const bool number = index.column() == LatencyColumn || index.column() == SpeedupColumn;
        return static_cast<int>(Qt::AlignVCenter | (number ? Qt::AlignRight : Qt::AlignLeft));
    }
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole)
        return {};
    switch (index.column()) {
    case TimeColumn:
        return entry.started.time().toString(QStringLiteral("HH:mm:ss"));
    case CandidateColumn:
        return entry.job.candidateName;
    case LineageColumn:
        return entry.job.lineageKey;
    case VerdictColumn:
        return statusText(entry);
    case LatencyColumn:
        return latencyText(entry);
    case SpeedupColumn:
        return speedupText(entry);
    case MessageColumn:
        return entry.message;
    default:
        return {};
    }
}

QVariant JobModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case TimeColumn:
        return tr("Time");
    case CandidateColumn:
        return tr("Candidate");
    case LineageColumn:
        return tr("Lineage");
    case VerdictColumn:
        return tr("Verdict");
    case LatencyColumn:
        return tr("Latency");
    case SpeedupColumn:
        return tr("vs parent");
    case MessageColumn:
        return tr("Result");
    default:
        return {};
    }
}

} // namespace klineage::ui
