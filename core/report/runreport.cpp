// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/figuretext.h"
#include "core/report/parts.h"
#include "core/report/subjectreports.h"

#include <algorithm>

namespace klineage::report {

namespace {

const gate::Trial *trialOfStep(const run::RunRecord &run, const std::string &id)
{
    const auto found = std::find_if(run.trials.begin(), run.trials.end(),
                                    [&](const gate::Trial &trial) { return !id.empty() && trial.id == id; });
    return found == run.trials.end() ? nullptr : &*found;
}

std::string runStateText(const run::RunRecord &run)
{
    return run.ending.code.empty() ? run.state : run.state + ", " + run.ending.text();
}

std::string resultText(const run::RunRecord &run, const run::Summary &summary)
{
    if (summary.rootSpeedup <= 0)
        return {};
    const std::string of = summary.reference.name == "root" ? "the root" : summary.reference.name;
    if (!summary.improved)
        return "No candidate came out faster than the root, which runs at " + factorText(summary.rootSpeedup)
               + " the speed of " + of + ".";
    return "The result runs at " + finalSpeedupText(run, summary) + " the speed of " + of + "; the root at "
           + factorText(summary.rootSpeedup)
           + (summary.audited ? ". The gate measured the result anew for this."
                              : ". The result was not measured anew after the run.");
}

Table runStepTable(const run::RunRecord &run)
{
    Table table{{{"Step", true},
                 {"Action"},
                 {"Title"},
                 {"Outcome"},
                 {"Verdict"},
                 {"Speedup", true},
                 {"Against its parent", true},
                 {"Best", true},
                 {"Cost", true},
                 {"Total", true},
                 {"Reason"}},
                {}};
    for (const run::StepRecord &step : run.steps) {
        const gate::Trial *trial = trialOfStep(run, step.trial);
        table.rows.push_back({std::to_string(step.number), step.action, step.title, step.outcome,
                              trial ? outcomeText(trial) : nothing, factorText(step.speedup),
                              pairedText(trial, "parent"), factorText(step.best), dollarText(step.dollars),
                              dollarText(step.totalDollars), step.reason});
    }
    return table;
}

} // namespace

std::string finalSpeedupText(const run::RunRecord &run, const run::Summary &summary)
{
    const gate::Trial *trial = trialOfStep(run, summary.trial);
    const std::string against = summary.reference.name == "root" ? "parent" : summary.reference.name;
    const gate::Comparison *comparison = trial ? trial->comparison(against) : nullptr;
    // A candidate that was made from another than the root has no pairing with it.
    if (comparison && comparison->speedup.value == summary.finalSpeedup)
        return speedupText(comparison->speedup);
    return factorText(summary.finalSpeedup) + (summary.finalSpeedup > 0 ? ", not paired" : "");
}

Document runReport(const run::RunRecord &run)
{
    const run::Summary summary = run::summarize(run);
    const run::Settings &settings = run.settings;
    Document document{"Run " + settings.id,
                      std::string(run::toString(settings.kind)) + " of " + settings.subject + ", "
                          + runStateText(run),
                      {}};
    if (std::string result = resultText(run, summary); !result.empty())
        document.blocks.emplace_back(Paragraph{std::move(result)});
    if (summary.best > 0)
        document.blocks.emplace_back(Figure{
            runFigure,
            "Running best against what was spent, a glyph a step. The line at 1× is the reference; paler lines "
            "are the runs beside it that can be compared."});
    Facts facts;
    facts.add("Kind", run::toString(settings.kind));
    facts.add("Subject", settings.subject);
    facts.add("Policy", settings.policy);
    facts.add("Author", settings.provider + (settings.model.empty() ? "" : ", " + settings.model));
    facts.add("Seed", std::to_string(settings.seed));
    facts.add("Budget",
              dollarText(settings.capDollars)
                  + (settings.maxSteps > 0 ? ", " + std::to_string(settings.maxSteps) + " steps" : ""));
    facts.add("Spent", dollarText(summary.dollars)
                           + (summary.loadDollars > 0
                                  ? ", " + dollarText(summary.loadDollars) + " of it for reading cards"
                                  : ""));
    facts.add("Questions", std::to_string(summary.questions) + ": " + std::to_string(summary.valid)
                               + " valid, " + std::to_string(summary.failed) + " failed, "
                               + std::to_string(summary.wrappers) + " wrappers");
    facts.add("Speedups against", summary.rootSpeedup > 0 ? summary.reference.name : "");
    facts.add("Begun", settings.created);
    facts.add("State", runStateText(run));
    for (const auto &[name, value] : settings.options)
        facts.add("Option " + name, value);
    std::vector<const gate::Trial *> trials;
    for (const gate::Trial &trial : run.trials)
        trials.push_back(&trial);
    if (!trials.empty())
        addEnvironment(facts, trials);
    document.blocks.emplace_back(Heading{"What was asked, and where it ran"});
    document.blocks.emplace_back(std::move(facts));
    document.blocks.emplace_back(Heading{"Steps"});
    if (run.steps.empty()) {
        document.blocks.emplace_back(Paragraph{"The run has no steps yet."});
    } else {
        document.blocks.emplace_back(Paragraph{
            "Speedup and best are T_ref / T_candidate against the run's reference; the speedup against the parent is paired, with "
            "its 95 % interval; latencies are medians with half the width of theirs."});
        document.blocks.emplace_back(runStepTable(run));
    }
    document.blocks.emplace_back(Heading{"How to look again"});
    document.blocks.emplace_back(
        Commands{{{"The recorded run once more from its replies and trials, step by step compared:",
                   "klineage-cli run replay " + settings.id}}});
    for (const std::string &notice : run.notices)
        document.blocks.emplace_back(Paragraph{notice});
    return document;
}

} // namespace klineage::report
