// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/runtrace.h"

#include "ui/style/format.h"

#include <QCoreApplication>

#include <algorithm>

namespace klineage::ui {

namespace {

QString traceText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::RunTrace", text);
}

} // namespace

RunTracePoint::Kind traceKind(const std::string &outcome)
{
    using Kind = RunTracePoint::Kind;
    if (outcome == "valid" || outcome == "accepted" || outcome == "stored")
        return Kind::Valid;
    if (outcome == "audited")
        return Kind::Audited;
    if (outcome == "wrapper")
        return Kind::Wrapper;
    if (outcome == "failed" || outcome == "rejected")
        return Kind::Failed;
    return Kind::Other;
}

RunTrace runTrace(const RunEntry &run)
{
    RunTrace trace;
    trace.run = run.id();
    trace.name = QStringLiteral("%1 · %2").arg(policyOf(run.record.settings), run.id());
    trace.reference = QString::fromStdString(run.summary.reference.name);
    trace.capDollars = run.record.settings.capDollars;
    trace.loadDollars = run.summary.loadDollars;
    for (const run::StepRecord &step : run.record.steps) {
        RunTracePoint point{step.number,  step.totalDollars,       step.best,
                            step.speedup, traceKind(step.outcome), {}};
        point.label = traceText("step %1 · %2: %3 · %4")
                          .arg(step.number)
                          .arg(QString::fromStdString(step.action), outcomeStyle(step.outcome).word,
                               QString::fromStdString(step.title.empty() ? step.reason : step.title));
        trace.points.push_back(std::move(point));
    }
    return trace;
}

std::vector<RunTrace> tracesBeside(const std::vector<RunEntryPtr> &runs, const QString &current,
                                   std::size_t most)
{
    std::vector<RunTrace> traces;
    const auto found =
        std::find_if(runs.begin(), runs.end(), [&](const RunEntryPtr &run) { return run->id() == current; });
    if (found == runs.end() || (*found)->record.steps.empty())
        return traces;
    const RunEntry &first = **found;
    traces.push_back(runTrace(first));
    for (const RunEntryPtr &other : runs) {
        const run::Settings &a = first.record.settings;
        const run::Settings &b = other->record.settings;
        if (traces.size() < most && other->id() != current && a.kind == b.kind && a.workload == b.workload
            && a.platform == b.platform && first.summary.reference.name == other->summary.reference.name
            && !other->record.steps.empty())
            traces.push_back(runTrace(*other));
    }
    return traces;
}

PlotTable runTraceTable(const std::vector<RunTrace> &traces)
{
    const QString reference = traces.empty() ? QString() : traces.front().reference;
    PlotTable table{{{traceText("Run"), QStringLiteral("run"), false},
                     {traceText("Step"), QStringLiteral("step")},
                     {traceText("What it was"), QStringLiteral("what"), false},
                     {traceText("Dollars spent"), QStringLiteral("dollars")},
                     {traceText("Speedup over %1").arg(reference), QStringLiteral("speedup")},
                     {traceText("Running best"), QStringLiteral("running_best")}},
                    {}};
    for (const RunTrace &trace : traces) {
        for (const RunTracePoint &point : trace.points)
            table.rows.push_back({QStringLiteral("%1#%2").arg(trace.run).arg(point.step),
                                  {trace.name, PlotTable::Cell(point.step, QString::number(point.step)),
                                   point.label, PlotTable::Cell(point.dollars, formatDollars(point.dollars)),
                                   PlotTable::speedup(point.speedup), PlotTable::speedup(point.best)}});
    }
    return table;
}

} // namespace klineage::ui
