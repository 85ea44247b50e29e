// SPDX-License-Identifier: GPL-3.0-or-later
// The verbs that look at runs: list, show, export.
#include "app/cli/commands.h"
#include "app/cli/format.h"
#include "app/cli/runsession.h"
#include "app/cli/texttable.h"

#include "core/files/atomicfile.h"
#include "core/kernel/candidatetext.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace klineage::cli {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

int listRuns(const Session &session)
{
    const Result<fs::path> root = session.workspaceRoot();
    if (!root)
        return session.fail(root.error());
    std::vector<Error> problems;
    const std::vector<run::RunRecord> runs = run::readRuns(*root / "runs", &problems);
    json out{{"runs", json::array()}, {"problems", json::array()}};
    using Align = TextTable::Align;
    TextTable table({{"RUN"},
                     {"STATE"},
                     {"KIND"},
                     {"SUBJECT"},
                     {"POLICY"},
                     {"STEPS", Align::Right},
                     {"BEST", Align::Right},
                     {"COST", Align::Right},
                     {"ENDING"}});
    for (const run::RunRecord &record : runs) {
        const run::Summary summary = run::summarize(record);
        out["runs"].push_back(summaryJson(record));
        table.addRow({record.settings.id, record.state, run::toString(record.settings.kind),
                      record.settings.subject, record.settings.policy, std::to_string(record.steps.size()),
                      formatFactor(summary.best), formatDollars(summary.dollars), record.ending.code});
    }
    for (const Error &problem : problems)
        out["problems"].push_back(problem.message);
    if (session.json()) {
        session.print(out);
        return problems.empty() ? exitOk : exitNegative;
    }
    if (table.isEmpty())
        std::printf("There are no runs in %s.\n", (*root / "runs").c_str());
    else
        std::printf("%s", table.text().c_str());
    for (const Error &problem : problems)
        std::fprintf(stderr, "klineage-cli: %s\n", problem.message.c_str());
    return problems.empty() ? exitOk : exitNegative;
}

int showRun(const Session &session, const std::string &name)
{
    const auto directory = findRun(session, name);
    if (!directory)
        return directory.error();
    const Result<run::RunRecord> record = run::readRun(*directory);
    if (!record)
        return session.fail(record.error());
    if (session.json()) {
        json out = summaryJson(*record);
        out["notices"] = record->notices;
        out["steps"] = json::array();
        for (const run::StepRecord &step : record->steps)
            out["steps"].push_back(stepJson(step));
        session.print(out);
        return exitOk;
    }
    printSummary(*record);
    using Align = TextTable::Align;
    TextTable table({{"STEP", Align::Right},
                     {"ACTION"},
                     {"OUTCOME"},
                     {"SPEEDUP", Align::Right},
                     {"BEST", Align::Right},
                     {"TOTAL", Align::Right},
                     {"TITLE"}});
    for (const run::StepRecord &step : record->steps)
        table.addRow({std::to_string(step.number), step.action, step.outcome, formatFactor(step.speedup),
                      formatFactor(step.best), formatDollars(step.totalDollars), step.title});
    std::printf("\n%s", table.text().c_str());
    return exitOk;
}

struct ExportOptions {
    std::string run;
    std::string trajectory;
    std::string best;
};

int exportRun(const Session &session, const ExportOptions &options)
{
    const auto directory = findRun(session, options.run);
    if (!directory)
        return directory.error();
    const Result<run::RunRecord> record = run::readRun(*directory);
    if (!record)
        return session.fail(record.error());
    const run::Summary summary = run::summarize(*record);
    const std::string csv = run::trajectoryCsv(summary);
    json written = json::array();
    if (!options.trajectory.empty()) {
        if (Status done = files::writeFileAtomic(options.trajectory, csv); !done)
            return session.fail(done.error());
        written.push_back(options.trajectory);
    }
    if (!options.best.empty()) {
        if (summary.candidate.empty())
            return session.fail({ErrorCode::NotFound, "The run has no correct candidate to export.", {}});
        const kernel::Surface surface =
            kernel::surfaceFromString(record->settings.surface).value_or(kernel::Surface());
        const Result<std::string> text =
            kernel::readCandidateText(*directory / run::candidateFileName(summary.candidate, surface));
        if (!text)
            return session.fail(text.error());
        if (Status done = files::writeFileAtomic(options.best, *text); !done)
            return session.fail(done.error());
        written.push_back(options.best);
    }
    if (session.json()) {
        json out = summaryJson(*record);
        out["written"] = written;
        out["trajectory"] = json::array();
        const auto measured = [](double speedup) { return speedup > 0 ? json(speedup) : json(); };
        for (const run::TrajectoryPoint &point : summary.trajectory)
            out["trajectory"].push_back({{"step", point.step},
                                         {"dollars", point.dollars},
                                         {"best", measured(point.best)},
                                         {"speedup", measured(point.speedup)},
                                         {"action", point.action},
                                         {"outcome", point.outcome}});
        session.print(out);
    } else if (written.empty()) {
        std::printf("%s", csv.c_str());
    } else {
        for (const json &file : written)
            std::printf("Wrote %s\n", file.get<std::string>().c_str());
    }
    return exitOk;
}

} // namespace

void addRunViews(CLI::App &group, Session &session)
{
    session.addVerb(group, "list", "All runs of the workspace, newest first",
                    [&session] { return listRuns(session); });
    const auto name = std::make_shared<std::string>();
    session
        .addVerb(group, "show", "One run: its result, its cost and its steps",
                 [&session, name] { return showRun(session, *name); })
        ->add_option("run", *name, "Id of a run of the workspace, or its folder")
        ->required();
    const auto options = std::make_shared<ExportOptions>();
    CLI::App *verb = session.addVerb(group, "export", "The trajectory as CSV, the best candidate as a file",
                                     [&session, options] { return exportRun(session, *options); });
    verb->add_option("run", options->run, "Id of a run of the workspace, or its folder")->required();
    verb->add_option("--trajectory", options->trajectory,
                     "Write the trajectory there instead of printing it");
    verb->add_option("--best", options->best, "Write the run's final candidate there");
}

} // namespace klineage::cli
