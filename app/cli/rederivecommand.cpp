// SPDX-License-Identifier: GPL-3.0-or-later
// `lineage rederive`: the steps of a lineage derived forward again, with authors and devices that meet only through files.
#include "app/cli/batchrecord.h"
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
    std::string ask;
    std::string jobs;
    std::vector<std::string> import; ///< the batch's output and the folder
};

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
    return {{"lineage", row.lineage},
            {"from", row.from},
            {"to", row.to},
            {"try", row.number},
            {"outcome", row.outcome},
            {"reason", row.reason},
            {"share", row.share ? json(*row.share) : json()},
            {"file", row.file.string()}};
}

/// How many there are of each outcome.
std::map<std::string, int> countsOf(const std::vector<run::HandRow> &rows)
{
    std::map<std::string, int> counts;
    for (const run::HandRow &row : rows)
        ++counts[row.outcome];
    return counts;
}

void printRows(std::FILE *out, const std::vector<run::HandRow> &rows)
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

/// What a verb does with each lineage; its rows are added up.
template <typename Each>
tl::expected<std::vector<run::HandRow>, int> rowsOf(const Session &session, const RederiveOptions &options,
                                                    const std::string &folder, Each &&each)
{
    const auto lineages = chooseLineages(session, options.lineages);
    if (!lineages)
        return tl::unexpected(lineages.error());
    std::vector<run::HandRow> all;
    for (const lineage::Lineage &lineage : *lineages) {
        const Result<std::vector<run::HandRow>> rows = each(run::ByHand{lineage, folder, options.transition});
        if (!rows)
            return tl::unexpected(session.fail(rows.error()));
        all.insert(all.end(), rows->begin(), rows->end());
    }
    return all;
}

json report(const std::vector<run::HandRow> &rows)
{
    json out{{"transitions", json::array()}, {"counts", countsOf(rows)}};
    for (const run::HandRow &row : rows)
        out["transitions"].push_back(handRowJson(row));
    return out;
}

int ask(const Session &session, const RederiveOptions &options)
{
    const auto rows = rowsOf(session, options, options.ask, run::askByHand);
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
    std::vector<std::string> lines;
    const auto rows = rowsOf(session, options, options.jobs,
                             [&](const run::ByHand &work) -> Result<std::vector<run::HandRow>> {
                                 Result<run::HandJobs> found = run::jobsByHand(work);
                                 if (!found)
                                     return tl::unexpected(found.error());
                                 for (const lineage::RecordJob &job : found->jobs)
                                     lines.push_back(lineage::writeRecordJob(job));
                                 return std::move(found->rows);
                             });
    if (!rows)
        return rows.error();
    if (session.json()) {
        json out = report(*rows);
        out["jobs"] = json::array();
        for (const std::string &line : lines)
            out["jobs"].push_back(json::parse(line));
        session.print(out);
        return exitOk;
    }
    for (const std::string &line : lines)
        std::printf("%s\n", line.c_str());
    printRows(stderr, *rows);
    return exitOk;
}

int importBatch(const Session &session, const RederiveOptions &options)
{
    const Result<BatchOutput> batch = readBatchOutput(options.import[0]);
    if (!batch)
        return batch.error().code == ErrorCode::NotFound ? session.usage(batch.error().message)
                                                         : session.fail(batch.error());
    std::vector<gate::Trial> trials;
    for (const BatchRecord &record : batch->records)
        trials.push_back(record.trial);
    const auto rows = rowsOf(session, options, options.import[1],
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
        for (const std::string &problem : batch->problems)
            std::fprintf(stderr, "klineage-cli: %s\n", problem.c_str());
    }
    return allAccepted ? exitOk : exitNegative;
}

int rederive(const Session &session, const RederiveOptions &options)
{
    if (!options.ask.empty())
        return ask(session, options);
    if (!options.jobs.empty())
        return printJobs(session, options);
    if (!options.import.empty())
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
    auto *ask = verb->add_option("--ask", options->ask, "Write prompts to this folder");
    auto *jobs = verb->add_option("--jobs", options->jobs, "Read the replies in this folder, print jobs");
    auto *import =
        verb->add_option("--import", options->import, "OUT DIR: the batch's output, and the folder")
            ->expected(2);
    ask->excludes(jobs)->excludes(import);
    jobs->excludes(import);
}

} // namespace klineage::cli
