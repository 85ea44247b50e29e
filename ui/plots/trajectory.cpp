// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/trajectory.h"

#include "core/lineage/table.h"
#include "ui/models/devicename.h"
#include "ui/models/lineagerow.h"
#include "ui/style/format.h"

#include "ui/style/status.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>
#include <map>

namespace klineage::ui {

namespace {

struct Named {
    std::string row;
    std::string label;
};

std::map<std::string, Named> rowsByTrial(const lineage::Lineage &lineage)
{
    std::map<std::string, Named> rows;
    for (const lineage::Branch &branch : lineage.branches)
        rows[branch.trial] = {"trial:" + branch.trial, "from " + branch.parent};
    for (const lineage::Attempt &attempt : lineage.attempts)
        rows[attempt.trial] = {attempt.id, attempt.id + " " + attempt.title};
    for (const lineage::State &state : lineage.states)
        rows[state.trial] = {state.id, state.id + " " + stepTitle(lineage, state).toStdString()};
    rows.erase(std::string());
    return rows;
}

/// The vendor routine that the last state on the device was timed beside; nullptr: none was.
const gate::Comparison *referenceOf(const lineage::Lineage &lineage, const std::string &device)
{
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        const gate::Trial *trial = lineage.trialOf(*state);
        if (!trial || !lineage::elsewhere(trial, device).empty())
            continue;
        if (const gate::Comparison *reference = trial->referenceComparison())
            return reference;
    }
    return nullptr;
}

/// How a trial went beside the reference, or else as compared with the first state.
TrajectoryPoint pointOf(const gate::Trial &trial, const gate::Comparison *reference, const gate::Trial *first)
{
    TrajectoryPoint point;
    if (trial.verdict.status != gate::VerdictStatus::Correct) {
        point.kind = TrajectoryPoint::Kind::Failed;
        return point;
    }
    const gate::Comparison *against = reference ? trial.comparison(reference->against) : nullptr;
    if (against) {
        point.speedup = against->speedup.value;
    } else if (trial.latencyNs.value > 0) {
        const double otherNs = reference ? reference->otherNs : first ? first->latencyNs.value : 0;
        point.speedup = otherNs / trial.latencyNs.value;
        point.kind = reference ? TrajectoryPoint::Kind::Unpaired : TrajectoryPoint::Kind::Valid;
    }
    return point;
}

QString outcomeOf(const gate::Trial &trial)
{
    return trial.verdict.status == gate::VerdictStatus::Correct && trial.latencyNs.value > 0
               ? formatLatency(trial.latencyNs.value)
               : statusStyle(trial.verdict.status).word;
}

QString tableText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Trajectory", text);
}

QString kindInWords(TrajectoryPoint::Kind kind)
{
    switch (kind) {
    case TrajectoryPoint::Kind::Valid:
        return tableText("● valid");
    case TrajectoryPoint::Kind::Unpaired:
        return tableText("○ valid, not paired");
    case TrajectoryPoint::Kind::Failed:
        break;
    }
    return tableText("△ failed");
}

} // namespace

std::vector<double> Trajectory::runningBest() const
{
    double paired = 0;
    for (const TrajectoryPoint &point : points) {
        if (point.kind == TrajectoryPoint::Kind::Valid)
            paired = std::max(paired, point.speedup);
    }
    std::vector<double> best;
    double value = 0;
    for (const TrajectoryPoint &point : points) {
        value = std::max(value, std::min(point.speedup, paired)); // 0 when it failed
        best.push_back(value);
    }
    return best;
}

QString Trajectory::elsewhereInWords() const
{
    if (elsewhere.empty())
        return {};
    QStringList devices;
    for (const TrajectoryElsewhere &trial : elsewhere)
        devices << distinctName(trial.device, device);
    devices.removeDuplicates();
    const QString others = devices.join(QStringLiteral(", "));
    return elsewhere.size() == 1
               ? tableText("1 trial on %1 is not drawn").arg(others)
               : tableText("%1 trials on %2 are not drawn").arg(elsewhere.size()).arg(others);
}

Trajectory lineageTrajectory(const lineage::Lineage &lineage)
{
    const auto rows = rowsByTrial(lineage);
    const std::string device = lineage::deviceOf(lineage);
    const gate::Comparison *reference = referenceOf(lineage, device);
    const gate::Trial *first = lineage.states.empty() ? nullptr : lineage.trialOf(lineage.states.front());
    if (!lineage::elsewhere(first, device).empty())
        first = nullptr;

    Trajectory trajectory;
    trajectory.device = QString::fromStdString(device);
    for (const gate::Trial &trial : lineage.trials) {
        const auto row = rows.find(trial.id);
        if (row == rows.end())
            continue;
        if (const std::string other = lineage::elsewhere(&trial, device); !other.empty()) {
            trajectory.elsewhere.push_back({QString::fromStdString(row->second.row),
                                            QString::fromStdString(row->second.label), outcomeOf(trial),
                                            QString::fromStdString(other)});
            continue;
        }
        TrajectoryPoint point = pointOf(trial, reference, first);
        // Right, but there is no time to compare with: no failure, and nothing to draw.
        if (point.kind != TrajectoryPoint::Kind::Failed && point.speedup <= 0)
            continue;
        point.trial = static_cast<double>(trajectory.points.size() + 1);
        point.row = QString::fromStdString(row->second.row);
        point.label = QString::fromStdString(row->second.label);
        trajectory.points.push_back(std::move(point));
    }
    trajectory.isPaired = reference != nullptr;
    if (!trajectory.points.empty())
        trajectory.reference = reference ? QString::fromStdString(reference->against) : QStringLiteral("K0");
    return trajectory;
}

PlotTable trajectoryTable(const Trajectory &trajectory)
{
    const QString speedup = trajectory.isPaired
                                ? tableText("Speedup over %1").arg(trajectory.reference)
                                : tableText("≈ over %1, not paired").arg(trajectory.reference);
    PlotTable table{{{tableText("Trial"), QStringLiteral("trial")},
                     {tableText("State"), QStringLiteral("state"), false},
                     {tableText("Outcome"), QStringLiteral("outcome"), false},
                     {speedup, QStringLiteral("speedup")},
                     {tableText("Running best"), QStringLiteral("running_best")}},
                    {}};
    const std::vector<double> best = trajectory.runningBest();
    for (std::size_t i = 0; i < trajectory.points.size(); ++i) {
        const TrajectoryPoint &point = trajectory.points[i];
        table.rows.push_back(
            {point.row,
             {PlotTable::Cell(point.trial, QString::number(point.trial)), point.label,
              kindInWords(point.kind), PlotTable::speedup(point.speedup), PlotTable::speedup(best[i])}});
    }
    for (const TrajectoryElsewhere &trial : trajectory.elsewhere)
        table.rows.push_back(
            {trial.row,
             {PlotTable::Cell(), trial.label, tableText("%1 on %2").arg(trial.outcome, trial.device),
              PlotTable::speedup(0), PlotTable::speedup(0)}});
    return table;
}

} // namespace klineage::ui
