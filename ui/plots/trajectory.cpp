// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/trajectory.h"

#include "core/lineage/table.h"
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

std::string referenceOf(const lineage::Lineage &lineage, const std::string &device)
{
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        const gate::Trial *trial = lineage.trialOf(*state);
        if (!trial || !lineage::elsewhere(trial, device).empty())
            continue;
        if (const gate::Comparison *reference = trial->referenceComparison())
            return reference->against;
    }
    return {};
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

} // namespace

std::vector<double> Trajectory::runningBest() const
{
    std::vector<double> best;
    double value = 0;
    for (const TrajectoryPoint &point : points) {
        if (point.kind == TrajectoryPoint::Kind::Valid)
            value = std::max(value, point.speedup);
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
        devices << trial.device;
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
    const std::string reference = referenceOf(lineage, device);
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
        TrajectoryPoint point;
        point.trial = static_cast<double>(trajectory.points.size() + 1);
        point.row = QString::fromStdString(row->second.row);
        point.label = QString::fromStdString(row->second.label);
        const gate::Comparison *against = reference.empty() ? nullptr : trial.comparison(reference);
        if (against)
            point.speedup = against->speedup.value;
        else if (reference.empty() && first && trial.latencyNs.value > 0)
            point.speedup = first->latencyNs.value / trial.latencyNs.value;
        point.kind = trial.verdict.status == gate::VerdictStatus::Correct && point.speedup > 0
                         ? TrajectoryPoint::Kind::Valid
                         : TrajectoryPoint::Kind::Failed;
        // Right, but not timed beside this reference: no failure, and nothing to draw.
        if (point.kind == TrajectoryPoint::Kind::Failed
            && trial.verdict.status == gate::VerdictStatus::Correct)
            continue;
        if (point.kind == TrajectoryPoint::Kind::Failed)
            point.speedup = 0;
        trajectory.points.push_back(std::move(point));
    }
    trajectory.isPaired = !reference.empty();
    if (!trajectory.points.empty())
        trajectory.reference = reference.empty() ? QStringLiteral("K0") : QString::fromStdString(reference);
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
        const bool isValid = point.kind == TrajectoryPoint::Kind::Valid;
        table.rows.push_back(
            {point.row,
             {PlotTable::Cell(point.trial, QString::number(point.trial)), point.label,
              isValid ? tableText("● valid") : tableText("△ failed"),
              PlotTable::speedup(isValid ? point.speedup : 0), PlotTable::speedup(best[i])}});
    }
    for (const TrajectoryElsewhere &trial : trajectory.elsewhere)
        table.rows.push_back(
            {trial.row,
             {PlotTable::Cell(), trial.label, tableText("%1 on %2").arg(trial.outcome, trial.device),
              PlotTable::speedup(0), PlotTable::speedup(0)}});
    return table;
}

} // namespace klineage::ui
