// SPDX-License-Identifier: GPL-3.0-or-later
// `lineage rederive`: the steps of a lineage derived forward again, with authors and devices that meet only through files.
#include "app/cli/byfiles.h"
#include "app/cli/commands.h"
#include "app/cli/texttable.h"

#include "core/base/numbertext.h"
#include "core/run/rederive/byhand.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>
#include <memory>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct RederiveOptions {
    std::vector<std::string> lineages;
    std::string transition;
    FileWork work;
};

using Rows = std::vector<run::HandRow>;

const char *const rederiveFooter =
    "--ask writes WORKLOAD-LINEAGE-STATE.prompt.md for each transition without a re-derivation: the simpler kernel and what is to be done,\n"
    "nothing of the stronger one. An author without memory of the others reads it alone and answers in ….reply.md.\n"
    "--jobs prints two lines a reply for klineage-gate batch; a reply that cannot be used gets ….problem.md, to be answered in ….reply.md.\n"
    "--import judges by the trials: correct, and within 3 % of the stronger state's time, above and below. What is accepted goes to the\n"
    "lineage, the rest becomes branches of it and gets ….repair1.prompt.md, then ….repair2.prompt.md. rederived/log.jsonl says how.\n"
    "A kernel that is faster by more than that is `stronger`: it could be a state of its own.\n"
    "Exit status of --import: 0 all that was judged is accepted, 1 something is not, or a line of the batch has no trial.";

json handRowJson(const run::HandRow &row)
{
    json out = fileRowJson(row);
    out["from"] = row.from;
    out["to"] = row.to;
    return out;
}

/// How many there are of each outcome.
std::map<std::string, int> countsOf(const Rows &rows)
{
    std::map<std::string, int> counts;
    for (const run::HandRow &row : rows)
        ++counts[row.outcome];
    return counts;
}

void printRows(std::FILE *out, const Rows &rows)
{
    constexpr auto right = TextTable::Align::Right;
    TextTable table({{"LINEAGE"}, {"STATE"}, {"TRY", right}, {"OUTCOME"}, {"TIME", right}, {"REASON"}});
    for (const run::HandRow &row : rows)
        table.addRow({row.lineage, row.to, std::to_string(row.number + 1), row.outcome,
                      row.share ? fixedText(*row.share, 3) + "×" : "", row.reason});
    std::fprintf(out, "%s", table.text().c_str());
    std::string counts;
    for (const auto &[outcome, count] : countsOf(rows))
        counts += (counts.empty() ? "" : ", ") + std::to_string(count) + ' ' + outcome;
    std::fprintf(out, "%s\n", counts.empty() ? "There are no transitions." : counts.c_str());
}

tl::expected<Rows, int> rowsOf(const Session &session, const RederiveOptions &options,
                               const std::string &folder,
                               const std::function<Result<Rows>(const run::ByHand &)> &each)
{
    const auto lineages = chooseLineages(session, options.lineages);
    if (!lineages)
        return tl::unexpected(lineages.error());
    return rowsOfEach<run::HandRow>(session, *lineages, [&](const lineage::Lineage &lineage) {
        return each({lineage, folder, options.transition});
    });
}

json report(const Rows &rows)
{
    json out{{"transitions", json::array()}, {"counts", countsOf(rows)}};
    for (const run::HandRow &row : rows)
        out["transitions"].push_back(handRowJson(row));
    return out;
}

int ask(const Session &session, const RederiveOptions &options)
{
    const auto rows = rowsOf(session, options, options.work.ask, run::askByHand);
    if (!rows)
        return rows.error();
    if (session.json())
        session.print(report(*rows));
    else
        printRows(stdout, *rows);
    return exitOk;
}

int printJobs(const Session &session, const RederiveOptions &options)
{
    JobLines lines;
    const auto rows =
        rowsOf(session, options, options.work.jobs, [&](const run::ByHand &work) -> Result<Rows> {
            Result<run::HandJobs> found = run::jobsByHand(work);
            if (!found)
                return tl::unexpected(found.error());
            lines.add(found->jobs);
            return std::move(found->rows);
        });
    if (!rows)
        return rows.error();
    if (session.json()) {
        json out = report(*rows);
        out["jobs"] = lines.json();
        session.print(out);
        return exitOk;
    }
    lines.print();
    printRows(stderr, *rows);
    return exitOk;
}

int importBatch(const Session &session, const RederiveOptions &options)
{
    const auto batch = readBatch(session, options.work.import[0]);
    if (!batch)
        return batch.error();
    const std::vector<gate::Trial> trials = trialsOf(*batch);
    const auto rows = rowsOf(session, options, options.work.import[1],
                             [&](const run::ByHand &work) { return run::judgeByHand(work, trials); });
    if (!rows)
        return rows.error();
    bool allAccepted = batch->problems.empty();
    for (const run::HandRow &row : *rows)
        allAccepted = allAccepted
                      && (row.outcome == "accepted" || row.outcome == "recorded" || row.outcome == "waiting");
    if (session.json()) {
        json out = report(*rows);
        out["problems"] = batch->problems;
        session.print(out);
    } else {
        printRows(stdout, *rows);
        printProblems(*batch);
    }
    return allAccepted ? exitOk : exitNegative;
}

int rederive(const Session &session, const RederiveOptions &options)
{
    if (!options.work.ask.empty())
        return ask(session, options);
    if (!options.work.jobs.empty())
        return printJobs(session, options);
    if (!options.work.import.empty())
        return importBatch(session, options);
    return session.usage("Say what to do with --ask, --jobs or --import.");
}

} // namespace

void addRederiveCommand(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<RederiveOptions>();
    CLI::App *verb =
        session.addVerb(group, "rederive", "Have the steps of a lineage derived forward again, by files",
                        [&session, options] { return rederive(session, *options); });
    verb->footer(rederiveFooter);
    verb->add_option("lineages", options->lineages, "WORKLOAD/PLATFORM …")->required();
    verb->add_option("--transition", options->transition, "Only the step to this state, as in K05");
    addFileWork(*verb, options->work);
}

} // namespace klineage::cli
