// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/experimentarms.h"
#include "app/cli/interrupt.h"
#include "app/cli/poolchoice.h"
#include "app/cli/runsession.h"
#include "app/cli/texttable.h"

#include "core/base/numbertext.h"
#include "core/files/atomicfile.h"
#include "core/run/drive/runprovider.h"
#include "core/run/experiment/measures.h"
#include "core/run/experiment/results.h"
#include "core/run/experiment/runcells.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>
#include <memory>

namespace klineage::cli {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct ExperimentOptions {
    std::string name;
    PoolChoice pool;
    std::string csv;
    std::string trajectories;
    int jobs = 0; ///< 0: one a gate
};

tl::expected<run::Experiment, int> openExperiment(const Session &session, const std::string &name)
{
    std::error_code ignored;
    fs::path directory = name;
    if (!fs::exists(directory / "experiment.toml", ignored)) {
        const Result<fs::path> root = session.workspaceRoot();
        if (!root)
            return tl::unexpected(session.fail(root.error()));
        directory = *root / "experiments" / name;
    }
    if (!fs::exists(directory / "experiment.toml", ignored))
        return tl::unexpected(session.usage("There is no experiment '" + name + "': '"
                                            + (directory / "experiment.toml").string()
                                            + "' does not exist."));
    Result<run::Experiment> experiment = run::readExperiment(directory);
    if (!experiment)
        return tl::unexpected(session.fail(experiment.error()));
    return *experiment;
}

json cellJson(const run::CellResult &cell)
{
    const run::Summary &summary = cell.summary;
    return {{"root", cell.cell.root},
            {"policy", cell.cell.policy},
            {"seed", cell.cell.seed},
            {"run", cell.cell.runId},
            {"state", cell.state},
            {"ending", cell.ending == run::Ending() ? json() : json(cell.ending.text())},
            {"success", cell.isSuccess()},
            {"reference", summary.reference.name.empty() ? json() : json(summary.reference.name)},
            {"root_speedup", summary.rootSpeedup},
            {"final_speedup", summary.finalSpeedup},
            {"best", summary.best},
            {"audited", summary.audited},
            {"questions", summary.questions},
            {"dollars", summary.dollars}};
}

json resultsJson(const run::Experiment &experiment, const run::ExperimentResults &results)
{
    json out{{"experiment", experiment.name},
             {"title", experiment.title},
             {"runs", json::array()},
             {"policies", json::array()}};
    for (const run::CellResult &cell : results.cells)
        out["runs"].push_back(cellJson(cell));
    for (const run::PolicyResult &policy : results.policies)
        out["policies"].push_back(
            {{"policy", policy.policy},
             {"root", policy.root.empty() ? json() : json(policy.root)},
             {"geometric_mean", policy.successes > 0 ? json(policy.geometricMean) : json()},
             {"successes", policy.successes},
             {"failures", policy.failures},
             {"unfinished", policy.unfinished},
             {"dollars", policy.dollars}});
    out["measures"] = json::array();
    for (const run::Measures &measures : run::measuresOf(experiment, results)) {
        const bool has = measures.instances > 0;
        out["measures"].push_back({{"policy", measures.policy},
                                   {"root", measures.root.empty() ? json() : json(measures.root)},
                                   {"instances", measures.instances},
                                   {"correct", has ? json(measures.correct) : json()},
                                   {"fast_1", has ? json(measures.fast1) : json()},
                                   {"fast_2", has ? json(measures.fast2) : json()},
                                   {"amsr", has ? json(measures.amsr) : json()},
                                   {"geometric_mean_of_correct",
                                    measures.geometricMean > 0 ? json(measures.geometricMean) : json()}});
    }
    addArmsJson(out, experiment, results);
    return out;
}

/// The measures of papers, with what they mean and where they come from.
void printMeasures(const run::Experiment &experiment, const run::ExperimentResults &results)
{
    using Align = TextTable::Align;
    TextTable table({{"POLICY"},
                     {"ROOT"},
                     {"RUNS", Align::Right},
                     {"CORRECT", Align::Right},
                     {"FAST_1", Align::Right},
                     {"FAST_2", Align::Right},
                     {"AMSR", Align::Right},
                     {"GEO. MEAN OF CORRECT", Align::Right}});
    const auto share = [](const run::Measures &of, double value) {
        return of.instances > 0 ? fixedText(100 * value, 0) + " %" : std::string("–");
    };
    for (const run::Measures &of : run::measuresOf(experiment, results))
        table.addRow({of.policy, of.root.empty() ? "all" : of.root, std::to_string(of.instances),
                      share(of, of.correct), share(of, of.fast1), share(of, of.fast2),
                      of.instances > 0 ? fixedText(of.amsr, 2) : "–", formatFactor(of.geometricMean)});
    std::printf("\n%s\n", table.text().c_str());
    for (const run::MeasureNote &note :
         {run::correctNote, run::fastNote, run::amsrNote, run::geometricMeanNote})
        std::printf("%s: %s %s\n", note.name, note.definition, note.source);
    std::printf("Instances are the runs that are over; the reference is that of each run.\n");
}

void printResults(const run::Experiment &experiment, const run::ExperimentResults &results)
{
    using Align = TextTable::Align;
    std::printf("Experiment %s%s%s\n\n", experiment.name.c_str(), experiment.title.empty() ? "" : ": ",
                experiment.title.c_str());
    TextTable runs({{"ROOT"},
                    {"POLICY"},
                    {"SEED", Align::Right},
                    {"STATE"},
                    {"REFERENCE"},
                    {"ROOT'S", Align::Right},
                    {"FINAL", Align::Right},
                    {"QUESTIONS", Align::Right},
                    {"COST", Align::Right},
                    {"ENDING"}});
    for (const run::CellResult &cell : results.cells) {
        const run::Summary &summary = cell.summary;
        runs.addRow({cell.cell.root, cell.cell.policy, std::to_string(cell.cell.seed), cell.state,
                     summary.reference.name, formatFactor(summary.rootSpeedup),
                     cell.isOver() && !cell.isSuccess() ? "failure" : formatFactor(summary.finalSpeedup),
                     std::to_string(summary.questions), formatDollars(summary.dollars), cell.ending.code});
    }
    std::printf("%s\n", runs.text().c_str());
    TextTable policies({{"POLICY"},
                        {"ROOT"},
                        {"GEOMETRIC MEAN", Align::Right},
                        {"SUCCESSES", Align::Right},
                        {"FAILURES", Align::Right},
                        {"UNFINISHED", Align::Right},
                        {"COST", Align::Right}});
    for (const run::PolicyResult &policy : results.policies)
        policies.addRow({policy.policy, policy.root.empty() ? "all" : policy.root,
                         formatFactor(policy.geometricMean), std::to_string(policy.successes),
                         std::to_string(policy.failures), std::to_string(policy.unfinished),
                         formatDollars(policy.dollars)});
    std::printf("%s\nSpeedups are T_ref / T_gen; the mean is over successes alone.\n",
                policies.text().c_str());
    printMeasures(experiment, results);
    printArms(experiment, results);
}

int showExperiment(const Session &session, const ExperimentOptions &options)
{
    const auto experiment = openExperiment(session, options.name);
    if (!experiment)
        return experiment.error();
    const run::ExperimentResults results = run::readResults(*experiment);
    for (const auto &[file, text] : {std::pair(options.csv, run::resultsCsv(results)),
                                     std::pair(options.trajectories, run::trajectoriesCsv(results))}) {
        if (file.empty())
            continue;
        if (Status written = files::writeFileAtomic(file, text); !written)
            return session.fail(written.error());
    }
    if (session.json())
        session.print(resultsJson(*experiment, results));
    else
        printResults(*experiment, results);
    return exitOk;
}

int runExperiments(const Session &session, const ExperimentOptions &options)
{
    const auto experiment = openExperiment(session, options.name);
    if (!experiment)
        return experiment.error();
    const Result<fs::path> workspace = session.workspaceRoot();
    if (!workspace)
        return session.fail(workspace.error());
    const InterruptWatcher interrupts;
    const Result<llm::PriceTable> prices = llm::loadPrices(*workspace);
    if (!prices)
        return session.fail(prices.error());
    const auto pool = openPool(session, options.pool);
    if (!pool)
        return pool.error();
    const int jobs = jobsOf(options.jobs, **pool);
    const double runs = static_cast<double>(run::cellsOf(*experiment).size());
    std::fprintf(stderr, "%.0f runs of at most %s each: at most %s.\n", runs,
                 formatDollars(experiment->budgetDollars).c_str(),
                 formatDollars(runs * experiment->budgetDollars).c_str());
    std::map<std::string, std::unique_ptr<RunPrinter>> printers; // by run
    run::ExperimentDriver driver{*workspace, *prices, gateOf(**pool), {}, interrupts.token(), {}, {}, jobs};
    driver.makeProvider = [&](const run::Settings &settings, const fs::path &directory) {
        const llm::NoticeCallback notice = [id = settings.id](const std::string &text) {
            std::fprintf(stderr, "%s: %s\n", id.c_str(), text.c_str());
        };
        return run::makeRunProvider(settings, *workspace, directory, {}, {}, notice);
    };
    driver.watch = [&](const run::Cell &cell, int number, int count) {
        const Result<run::RunRecord> before = run::readRun(experiment->directory / "runs" / cell.runId);
        const std::string prefix =
            '(' + std::to_string(number) + '/' + std::to_string(count) + ") " + cell.runId + ' ';
        std::unique_ptr<RunPrinter> &printer = printers[cell.runId];
        printer = std::make_unique<RunPrinter>(before ? static_cast<int>(before->steps.size()) : 0, prefix);
        run::Watcher watcher = printer->watcher();
        if (jobs > 1) { // what they are all busy with has no room on one line
            watcher.begins = {};
            watcher.gateProgress = {};
        }
        return watcher;
    };
    driver.ended = [&](const run::Cell &cell, const Result<run::Ending> &ending) {
        if (const auto printer = printers.find(cell.runId); printer != printers.end())
            printer->second->clear();
        std::fprintf(stderr, "%s: %s\n", cell.runId.c_str(),
                     ending ? (ending->code + ": " + ending->reason).c_str()
                            : ending.error().message.c_str());
    };
    const Result<run::ExperimentOutcome> outcome = run::runExperiment(*experiment, driver);
    if (!outcome)
        return session.fail(outcome.error());
    const int shown = showExperiment(session, options);
    if (shown != exitOk)
        return shown;
    if (!outcome->problems.empty())
        return exitEnvironment;
    return interrupts.token().stop_requested() || outcome->stopped > 0 ? exitNegative : exitOk;
}

} // namespace

void addExperimentCommands(CLI::App &app, Session &session)
{
    CLI::App *group = Session::addGroup(app, "experiment",
                                        "Experiments: roots × policies × seeds under one gate and budget");
    const auto options = std::make_shared<ExperimentOptions>();
    const auto add = [&](const char *name, const char *text, const std::function<int()> &act) {
        CLI::App *verb = session.addVerb(*group, name, text, act);
        verb->add_option("experiment", options->name, "Name of a folder in experiments/, or the folder")
            ->required();
        verb->add_option("--csv", options->csv, "Write a line for each run there");
        verb->add_option("--trajectories", options->trajectories,
                         "Write running best against dollars there, as CSV");
        return verb;
    };
    CLI::App *run =
        add("run", "Run what is not over yet, then show the results (Ctrl+C stops it; run again to go on)",
            [&session, options] { return runExperiments(session, *options); });
    run->add_option("--jobs", options->jobs,
                    "Runs at a time; their trials queue for the gates (default: one a gate)")
        ->check(CLI::Range(1, 64));
    addPoolOptions(*run, options->pool);
    add("show", "The results so far", [&session, options] { return showExperiment(session, *options); });
}

} // namespace klineage::cli
