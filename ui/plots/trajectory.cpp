// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/trajectory.h"

#include "ui/models/lineagerow.h"
#include "ui/style/format.h"

#include <QCoreApplication>

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

std::string referenceOf(const lineage::Lineage &lineage)
{
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        const gate::Trial *trial = lineage.trialOf(*state);
        if (const gate::Comparison *reference = trial ? trial->referenceComparison() : nullptr)
            return reference->against;
    }
    return {};
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

Trajectory lineageTrajectory(const lineage::Lineage &lineage)
{
    const auto rows = rowsByTrial(lineage);
    const std::string reference = referenceOf(lineage);
    const gate::Trial *first = lineage.states.empty() ? nullptr : lineage.trialOf(lineage.states.front());

    Trajectory trajectory;
    for (const gate::Trial &trial : lineage.trials) {
        const auto row = rows.find(trial.id);
        if (row == rows.end())
            continue;
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
    return table;
}

} // namespace klineage::ui
