// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/listtext.h"
#include "core/base/numbertext.h"
#include "core/report/figuretext.h"
#include "core/report/parts.h"
#include "core/report/subjectreports.h"
#include "core/run/experiment/contrast.h"

#include <algorithm>

namespace klineage::report {

namespace {

/// Least and greatest final speedup of the successes that a policy's mean is over.
std::string spreadText(const run::ExperimentResults &results, const run::PolicyResult &policy)
{
    double low = 0;
    double high = 0;
    for (const run::CellResult &cell : results.cells) {
        const bool counts = cell.cell.policy == policy.policy && cell.isSuccess()
                            && (policy.root.empty() || cell.cell.root == policy.root);
        if (!counts)
            continue;
        low = low > 0 ? std::min(low, cell.summary.finalSpeedup) : cell.summary.finalSpeedup;
        high = std::max(high, cell.summary.finalSpeedup);
    }
    return high > 0 ? factorText(low) + " to " + factorText(high) : nothing;
}

Table policyTable(const run::ExperimentResults &results)
{
    Table table{{{"Policy"},
                 {"Root"},
                 {"Geometric mean", true},
                 {"Least to greatest", true},
                 {"Successes", true},
                 {"Failures", true},
                 {"Unfinished", true},
                 {"Cost", true}},
                {}};
    for (const run::PolicyResult &policy : results.policies)
        table.rows.push_back({policy.policy, policy.root.empty() ? "all" : policy.root,
                              factorText(policy.geometricMean), spreadText(results, policy),
                              std::to_string(policy.successes), std::to_string(policy.failures),
                              std::to_string(policy.unfinished), dollarText(policy.dollars)});
    return table;
}

/// Of an experiment with goals.
Table armTable(const run::Experiment &experiment, const run::ExperimentResults &results)
{
    Table table{{{"Arm"},
                 {"Root"},
                 {"Goal", true},
                 {"Runs", true},
                 {"Reached", true},
                 {"First right", true},
                 {"Gain over the root, paired", true},
                 {"Questions to the goal", true},
                 {"Cost to the goal", true}},
                {}};
    for (const run::ArmResult &arm : run::armResults(experiment, results))
        table.rows.push_back({arm.policy, arm.root.empty() ? "all" : arm.root,
                              arm.root.empty() ? nothing : factorText(experiment.goals.at(arm.root)),
                              std::to_string(arm.runs), std::to_string(arm.reached),
                              std::to_string(arm.firstRight), arm.runs > 0 ? factorText(arm.gain) : nothing,
                              arm.reached > 0 ? fixedText(arm.questions, 1) : nothing,
                              arm.reached > 0 ? dollarText(arm.dollars) : nothing});
    return table;
}

Table contrastTable(const std::vector<run::Contrast> &contrasts)
{
    Table table{{{"Arm"},
                 {"Against"},
                 {"Roots", true},
                 {"Points of the runs that reach the goal", true},
                 {"p", true},
                 {"Gain against gain", true},
                 {"95 %", true},
                 {"p", true}},
                {}};
    for (const run::Contrast &contrast : contrasts)
        table.rows.push_back(
            {contrast.policy, contrast.against, std::to_string(contrast.roots), fixedText(contrast.points, 0),
             fixedText(contrast.pPoints, 3), factorText(contrast.ratio),
             factorText(contrast.low) + " to " + factorText(contrast.high), fixedText(contrast.pRatio, 3)});
    return table;
}

/// The interval is in the run's trials; a run that cannot be read has none.
std::string finalText(const run::Experiment &experiment, const run::CellResult &cell)
{
    if (cell.isOver() && !cell.isSuccess())
        return "failure";
    const Result<run::RunRecord> record = run::readRun(experiment.directory / "runs" / cell.cell.runId);
    return record ? finalSpeedupText(*record, cell.summary) : factorText(cell.summary.finalSpeedup);
}

Table runTable(const run::Experiment &experiment, const run::ExperimentResults &results)
{
    Table table{{{"Root"},
                 {"Policy"},
                 {"Seed", true},
                 {"State"},
                 {"Against"},
                 {"Root's speedup", true},
                 {"Final speedup", true},
                 {"Valid", true},
                 {"Failed", true},
                 {"Questions", true},
                 {"Cost", true},
                 {"Ending"}},
                {}};
    for (const run::CellResult &cell : results.cells) {
        const run::Summary &summary = cell.summary;
        table.rows.push_back({cell.cell.root, cell.cell.policy, std::to_string(cell.cell.seed), cell.state,
                              summary.reference.name.empty() ? nothing : summary.reference.name,
                              factorText(summary.rootSpeedup), finalText(experiment, cell),
                              std::to_string(summary.valid), std::to_string(summary.failed),
                              std::to_string(summary.questions), dollarText(summary.dollars),
                              cell.ending.code.empty() ? nothing : cell.ending.text()});
    }
    return table;
}

/// The policies side by side on what they share: a root and a seed a line.
Table pairTable(const run::Experiment &experiment, const run::ExperimentResults &results)
{
    Table table{{{"Root"}, {"Seed", true}}, {}};
    for (const std::string &policy : experiment.policies)
        table.columns.push_back({policy, true});
    for (const std::string &root : experiment.roots) {
        for (const std::uint64_t seed : experiment.seeds) {
            std::vector<std::string> row{root, std::to_string(seed)};
            for (const std::string &policy : experiment.policies) {
                const auto cell =
                    std::find_if(results.cells.begin(), results.cells.end(), [&](const run::CellResult &c) {
                        return c.cell.root == root && c.cell.seed == seed && c.cell.policy == policy;
                    });
                row.push_back(cell == results.cells.end() ? nothing : finalText(experiment, *cell));
            }
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

} // namespace

Document experimentReport(const run::Experiment &experiment)
{
    const run::ExperimentResults results = run::readResults(experiment);
    Document document{
        experiment.title.empty() ? experiment.name : experiment.title, "Experiment " + experiment.name, {}};
    std::vector<std::string> seeds;
    for (const std::uint64_t seed : experiment.seeds)
        seeds.push_back(std::to_string(seed));
    Facts facts;
    facts.add("Roots", joined(experiment.roots));
    facts.add("Policies", joined(experiment.policies));
    facts.add("Seeds", joined(seeds));
    facts.add("Budget a run",
              dollarText(experiment.budgetDollars)
                  + (experiment.maxSteps > 0 ? ", " + std::to_string(experiment.maxSteps) + " steps" : ""));
    facts.add("Author", experiment.provider + (experiment.model.empty() ? "" : ", " + experiment.model));
    const bool hasBegun =
        std::any_of(results.cells.begin(), results.cells.end(),
                    [](const run::CellResult &cell) { return !cell.summary.trajectory.empty(); });
    document.blocks.emplace_back(std::move(facts));
    if (hasBegun)
        document.blocks.emplace_back(Figure{
            experimentFigure,
            "Running best against dollars, one plot a root: thin a seed, bold the median of a policy's seeds. Failures "
            "have no speed and stand below."});
    document.blocks.emplace_back(Heading{"Policies"});
    document.blocks.emplace_back(Paragraph{
        "Final speedups T_ref / T_candidate against the reference of each run. The mean is over successes alone; failures are counted "
        "beside it, and the spread is that of the successes, not an interval of confidence."});
    document.blocks.emplace_back(policyTable(results));
    if (!experiment.goals.empty()) {
        document.blocks.emplace_back(Heading{"Arms"});
        if (!experiment.rule.empty())
            document.blocks.emplace_back(Paragraph{"Said before the first run: " + experiment.rule});
        document.blocks.emplace_back(Paragraph{
            "A run reaches its goal when its audited candidate gains as much over the root, paired, as the goal says; one without a "
            "faster candidate counts as a gain of 1. The root is the unit: its seeds are averaged. p of a two-sided permutation of signs "
            "over roots, intervals of a bootstrap over roots."});
        document.blocks.emplace_back(armTable(experiment, results));
        document.blocks.emplace_back(contrastTable(run::contrasts(experiment, results)));
    }
    document.blocks.emplace_back(Heading{"Side by side"});
    document.blocks.emplace_back(Paragraph{
        "The final speedup of each run against its reference, a column a policy. Intervals are of 95 %, from the paired rounds of the "
        "trial that stands for the result; two columns were not timed beside each other."});
    document.blocks.emplace_back(pairTable(experiment, results));
    document.blocks.emplace_back(Heading{"Runs"});
    document.blocks.emplace_back(runTable(experiment, results));
    document.blocks.emplace_back(Heading{"How to look again"});
    document.blocks.emplace_back(Commands{
        {{"The tables, from what is recorded:", "klineage-cli experiment show " + experiment.name}}});
    return document;
}

} // namespace klineage::report
