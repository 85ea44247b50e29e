// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/policycurves.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>
#include <set>

namespace klineage::ui {

namespace {

/// The line's value at x, which is at or right of its first point.
double valueAt(const std::vector<QPointF> &line, double x)
{
    double value = line.front().y();
    for (const QPointF &point : line) {
        if (point.x() > x)
            break;
        value = point.y();
    }
    return value;
}

double medianOf(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : std::sqrt(values[middle - 1] * values[middle]);
}

SeedCurve seedCurve(const run::CellResult &cell)
{
    const run::Summary &summary = cell.summary;
    SeedCurve curve{QString::fromStdString(cell.cell.runId),
                    cell.cell.seed,
                    cell.isOver(),
                    cell.isSuccess(),
                    summary.loadDollars,
                    {}};
    if (summary.reference.name.empty())
        return curve;
    RunTracePoint root;
    root.best = root.speedup = summary.rootSpeedup;
    root.label = QCoreApplication::translate("klineage::ui::Experiments", "the root");
    curve.points.push_back(root);
    double best = summary.rootSpeedup;
    for (const run::TrajectoryPoint &step : summary.trajectory) {
        best = std::max(best, step.best);
        curve.points.push_back(
            {step.step, step.dollars, best, step.speedup, traceKind(step.outcome),
             QCoreApplication::translate("klineage::ui::Experiments", "step %1 · %2: %3")
                 .arg(step.step)
                 .arg(QString::fromStdString(step.action), outcomeStyle(step.outcome).word)});
    }
    return curve;
}

void addName(QString &names, const QString &name)
{
    if (name.isEmpty() || names.split(QStringLiteral(", ")).contains(name))
        return;
    names += (names.isEmpty() ? QString() : QStringLiteral(", ")) + name;
}

std::vector<QPointF> lineOf(const SeedCurve &seed, const ExperimentCurves &curves)
{
    std::vector<QPointF> line;
    for (const RunTracePoint &point : seed.points)
        line.emplace_back(curves.x(point), point.best);
    return line;
}

void measure(RootCurves &root, const ExperimentCurves &curves)
{
    for (PolicyCurve &policy : root.policies) {
        std::vector<std::vector<QPointF>> over;
        for (const SeedCurve &seed : policy.seeds) {
            root.loadDollars = std::max(root.loadDollars, seed.loadDollars);
            if (seed.isOver && !seed.points.empty())
                over.push_back(lineOf(seed, curves));
            for (const RunTracePoint &point : seed.points) {
                root.right = std::max(root.right, curves.x(point));
                root.top = std::max({root.top, point.best, point.speedup});
            }
        }
        policy.medianOf = static_cast<int>(over.size());
        policy.median = medianSteps(over);
    }
}

} // namespace

std::vector<QPointF> medianSteps(const std::vector<std::vector<QPointF>> &lines)
{
    std::set<double> places;
    for (const std::vector<QPointF> &line : lines) {
        for (const QPointF &point : line)
            places.insert(point.x());
    }
    std::vector<QPointF> steps;
    for (const double x : places) {
        std::vector<double> values;
        for (const std::vector<QPointF> &line : lines) {
            if (!line.empty())
                values.push_back(valueAt(line, x));
        }
        steps.emplace_back(x, medianOf(std::move(values)));
    }
    return steps;
}

ExperimentCurves curvesOf(const run::Experiment &experiment, const run::ExperimentResults &results)
{
    ExperimentCurves curves;
    curves.costs = std::any_of(results.cells.begin(), results.cells.end(),
                               [](const run::CellResult &cell) { return cell.summary.dollars > 0; });
    for (const std::string &name : experiment.roots) {
        RootCurves root;
        root.root = QString::fromStdString(name);
        root.capDollars = experiment.budgetDollars;
        for (std::size_t series = 0; series < experiment.policies.size(); ++series) {
            PolicyCurve policy;
            policy.policy = QString::fromStdString(experiment.policies[series]);
            policy.series = series;
            for (const run::CellResult &cell : results.cells) {
                if (cell.cell.root != name || cell.cell.policy != experiment.policies[series])
                    continue;
                policy.seeds.push_back(seedCurve(cell));
                addName(root.reference, QString::fromStdString(cell.summary.reference.name));
                if (root.rootSpeedup <= 0)
                    root.rootSpeedup = cell.summary.rootSpeedup;
            }
            root.policies.push_back(std::move(policy));
        }
        measure(root, curves);
        curves.roots.push_back(std::move(root));
    }
    return curves;
}

} // namespace klineage::ui
