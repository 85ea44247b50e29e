// SPDX-License-Identifier: GPL-3.0-or-later
// `lineage roundtrip`: whole lineages come to again from their first states, with cards and without, and what came of it.
#include "app/cli/byfiles.h"
#include "app/cli/commands.h"
#include "app/cli/texttable.h"

#include "core/base/numbertext.h"
#include "core/run/roundtrip/roundtrip.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct RoundtripOptions {
    std::vector<std::string> lineages;
    std::vector<std::string> arms{"none", "no-blocks", "full"};
    int trials = 5;
    FileWork work;
};

const char *const roundtripFooter =
    "Without --ask, --jobs and --import it prints what is recorded: trials of each arm, how many came to 0.9 of the last state's speed, and the\n"
    "median of their shares of it.\n"
    "--ask writes WORKLOAD-LINEAGE-ARM-tN.prompt.md for each trial: the first state, how fast the last one is, and the cards as the arm shows them.\n"
    "An author without memory of the others reads it alone and answers in ….reply.md.\n"
    "--jobs prints a line a reply for klineage-gate batch, against the last state.\n"
    "--import judges by the trials, once a reply, and keeps them in roundtrip/ in the lineage's folder. A reply that does not come that far gets\n"
    "….repair1.prompt.md with the verdict: one further try.\n"
    "Exit status of --import: 0 every trial that was judged is recovered, 1 something is not.";

using Tries = std::vector<run::RoundtripRow>;

json rowJson(const run::RoundtripRow &row)
{
    json out = fileRowJson(row);
    out["arm"] = row.arm;
    out["trial"] = row.trial;
    return out;
}

void printTries(std::FILE *out, const Tries &rows)
{
    constexpr auto right = TextTable::Align::Right;
    TextTable table(
        {{"LINEAGE"}, {"ARM"}, {"TRIAL", right}, {"TRY", right}, {"OUTCOME"}, {"SPEED", right}, {"REASON"}});
    for (const run::RoundtripRow &row : rows)
        table.addRow({row.lineage, row.arm, std::to_string(row.trial), std::to_string(row.number + 1),
                      row.outcome, row.share ? fixedText(*row.share, 3) + "×" : "", row.reason});
    std::fprintf(out, "%s", table.text().c_str());
}

int printRecorded(const Session &session, const std::vector<lineage::Lineage> &lineages)
{
    constexpr auto right = TextTable::Align::Right;
    TextTable table({{"LINEAGE"},
                     {"ARM"},
                     {"TRIALS", right},
                     {"CORRECT", right},
                     {"RECOVERED", right},
                     {"AT FIRST", right},
                     {"MEDIAN SPEED", right}});
    json out = json::array();
    std::map<std::string, run::RoundtripCount> sums;
    for (const lineage::Lineage &lineage : lineages) {
        const auto lines = run::readRoundtrips(lineage.directory);
        if (!lines)
            return session.fail(lines.error());
        for (const run::RoundtripCount &count : run::countRoundtrips(*lines)) {
            table.addRow({lineage.key(), count.arm, std::to_string(count.trials),
                          std::to_string(count.correct), std::to_string(count.recovered),
                          std::to_string(count.first), fixedText(count.medianShare, 3) + "×"});
            out.push_back({{"lineage", lineage.key()},
                           {"arm", count.arm},
                           {"trials", count.trials},
                           {"correct", count.correct},
                           {"recovered", count.recovered},
                           {"recovered_at_first", count.first},
                           {"median_share", count.medianShare}});
            run::RoundtripCount &sum = sums[count.arm];
            sum.trials += count.trials;
            sum.correct += count.correct;
            sum.recovered += count.recovered;
            sum.first += count.first;
        }
    }
    if (session.json()) {
        session.print(out);
        return exitOk;
    }
    if (sums.empty()) {
        std::printf("No roundtrip of these lineages is recorded: begin with --ask DIR.\n");
        return exitOk;
    }
    for (const auto &[arm, sum] : sums) {
        if (lineages.size() > 1)
            table.addRow({"all", arm, std::to_string(sum.trials), std::to_string(sum.correct),
                          std::to_string(sum.recovered), std::to_string(sum.first), ""});
    }
    std::printf("%s", table.text().c_str());
    return exitOk;
}

int finish(const Session &session, const Tries &rows, std::FILE *out, json document)
{
    if (!session.json()) {
        printTries(out, rows);
        return exitOk;
    }
    document["trials"] = json::array();
    for (const run::RoundtripRow &row : rows)
        document["trials"].push_back(rowJson(row));
    session.print(document);
    return exitOk;
}

int roundtrip(const Session &session, const RoundtripOptions &options)
{
    const auto lineages = chooseLineages(session, options.lineages);
    if (!lineages)
        return lineages.error();
    if (options.work.isNothing())
        return printRecorded(session, *lineages);
    const auto workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    const auto rowsOf = [&](const std::string &folder,
                            const std::function<Result<Tries>(const run::RoundtripWork &)> &each) {
        return rowsOfEach<run::RoundtripRow>(session, *lineages, [&](const lineage::Lineage &lineage) {
            return each({*workspace, lineage, folder, options.arms, options.trials});
        });
    };
    if (!options.work.ask.empty()) {
        const auto rows = rowsOf(options.work.ask, run::askRoundtrips);
        return rows ? finish(session, *rows, stdout, {}) : rows.error();
    }
    if (!options.work.jobs.empty()) {
        JobLines lines;
        const auto rows = rowsOf(options.work.jobs, [&](const run::RoundtripWork &work) -> Result<Tries> {
            Result<run::RoundtripJobs> found = run::roundtripJobs(work);
            if (!found)
                return tl::unexpected(found.error());
            lines.add(found->jobs);
            return std::move(found->rows);
        });
        if (!rows)
            return rows.error();
        if (!session.json())
            lines.print();
        return finish(session, *rows, stderr, {{"jobs", lines.json()}});
    }
    const auto batch = readBatch(session, options.work.import[0]);
    if (!batch)
        return batch.error();
    const std::vector<gate::Trial> trials = trialsOf(*batch);
    const auto rows = rowsOf(options.work.import[1], [&](const run::RoundtripWork &work) {
        return run::judgeRoundtrips(work, trials);
    });
    if (!rows)
        return rows.error();
    finish(session, *rows, stdout, {{"problems", batch->problems}});
    printProblems(*batch);
    const bool all = batch->problems.empty() && std::all_of(rows->begin(), rows->end(), [](const auto &row) {
                         return row.outcome == "recovered" || row.outcome == "waiting";
                     });
    return all ? exitOk : exitNegative;
}

} // namespace

void addRoundtripCommand(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<RoundtripOptions>();
    CLI::App *verb = session.addVerb(group, "roundtrip",
                                     "Have whole lineages come to again from their first states, by files",
                                     [&session, options] { return roundtrip(session, *options); });
    verb->footer(roundtripFooter);
    verb->add_option("lineages", options->lineages, "WORKLOAD/PLATFORM …")->required();
    verb->add_option("--arms", options->arms, "Of none, no-blocks, full (all three), with commas")
        ->delimiter(',');
    verb->add_option("--trials", options->trials, "Of each arm (5)")->check(CLI::Range(1, 100));
    addFileWork(*verb, options->work);
}

} // namespace klineage::cli
