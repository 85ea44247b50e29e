// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/format.h"
#include "app/cli/texttable.h"

#include "core/lineage/recordjobs.h"
#include "core/lineage/rederived.h"
#include "core/lineage/verify.h"
#include "core/trial/analysis/analysis.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace klineage::cli {

using nlohmann::json;

tl::expected<std::vector<lineage::Lineage>, int> chooseLineages(const Session &session,
                                                                const std::vector<std::string> &keys)
{
    Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return tl::unexpected(session.fail(workspace.error()));
    for (const Error &problem : workspace->problems)
        std::fprintf(stderr, "klineage-cli: %s\n", problem.message.c_str());
    if (keys.empty())
        return std::move(workspace->lineages);
    std::vector<lineage::Lineage> chosen;
    for (const std::string &key : keys) {
        if (const lineage::Lineage *found = workspace->findLineage(key)) {
            chosen.push_back(*found);
            continue;
        }
        return tl::unexpected(session.unknownName("lineage", key, workspace->lineageKeys()));
    }
    return chosen;
}

namespace {

json summary(const lineage::Lineage &lineage)
{
    return {{"lineage", lineage.key()},
            {"workload", lineage.workload},
            {"platform", lineage.platform},
            {"surface", kernel::toString(lineage.surface)},
            {"title", lineage.title},
            {"termination", lineage.termination},
            {"states", lineage.states.size()},
            {"rederived", rederivedJson(lineage)},
            {"attempts", lineage.attempts.size()},
            {"branches", lineage.branches.size()},
            {"trials", lineage.trials.size()},
            {"notices", lineage.notices}};
}

json details(const lineage::Lineage &lineage)
{
    json out = summary(lineage);
    out["origin"] = lineage.origin;
    out["reason"] = lineage.reason;
    out["states"] = json::array();
    for (const lineage::State &state : lineage.states) {
        const gate::Trial *trial = lineage.trialOf(state);
        out["states"].push_back(
            {{"id", state.id},
             {"file", state.file},
             {"title", state.title},
             {"trial", state.trial},
             {"analysis",
              trial && trial->latencyNs.value > 0 ? gate::analysisJson(gate::analyse(*trial)) : json()}});
    }
    out["transitions"] = transitionsJson(lineage);
    out["attempts"] = json::array();
    for (const lineage::Attempt &attempt : lineage.attempts)
        out["attempts"].push_back({{"id", attempt.id},
                                   {"parent", attempt.parent},
                                   {"file", attempt.file},
                                   {"title", attempt.title},
                                   {"category", attempt.category},
                                   {"locus", attempt.locus},
                                   {"reason", attempt.reason},
                                   {"trial", attempt.trial}});
    out["branches"] = json::array();
    for (const lineage::Branch &branch : lineage.branches)
        out["branches"].push_back(
            {{"trial", branch.trial}, {"parent", branch.parent}, {"file", branch.file}});
    return out;
}

int listLineages(const Session &session)
{
    const auto lineages = chooseLineages(session, {});
    if (!lineages)
        return lineages.error();
    if (session.json()) {
        json out{{"lineages", json::array()}};
        for (const lineage::Lineage &lineage : *lineages)
            out["lineages"].push_back(summary(lineage));
        session.print(out);
        return exitOk;
    }
    constexpr auto right = TextTable::Align::Right;
    TextTable table({{"LINEAGE"},
                     {"TITLE"},
                     {"STATES", right},
                     {"REJECTED", right},
                     {"BRANCHES", right},
                     {"TRIALS", right},
                     {"NOTICES", right}});
    for (const lineage::Lineage &lineage : *lineages)
        table.addRow({lineage.key(), lineage.title, std::to_string(lineage.states.size()),
                      std::to_string(lineage.attempts.size()), std::to_string(lineage.branches.size()),
                      std::to_string(lineage.trials.size()), std::to_string(lineage.notices.size())});
    std::printf("%s", table.isEmpty() ? "There are no lineages.\n" : table.text().c_str());
    return exitOk;
}

void printDetails(const lineage::Lineage &lineage)
{
    std::printf("%s: %s\n", lineage.key().c_str(), lineage.title.c_str());
    if (!lineage.origin.empty())
        std::printf("Origin: %s\n", lineage.origin.c_str());
    std::printf("Termination: %s. %s\n", lineage.termination.c_str(), lineage.reason.c_str());
    std::printf("%s\n\n", lineage::rederivedText(lineage::countRederived(lineage)).c_str());
    TextTable steps({{"STATE"}, {"FILE"}, {"TITLE"}, {"CATEGORY"}, {"LOCUS"}, {"CARD"}, {"BOUND BY"}});
    for (const lineage::State &state : lineage.states) {
        const lineage::Transition *step = lineage.transitionTo(state.id);
        const gate::Trial *trial = lineage.trialOf(state);
        steps.addRow({state.id, state.file, state.title, step ? step->category : "", step ? step->locus : "",
                      step ? step->card : "",
                      trial ? gate::toString(gate::analyse(*trial).classification.bound) : ""});
    }
    std::printf("%s", steps.text().c_str());
    if (const gate::Trial *best = lineage.states.empty() ? nullptr : lineage.trialOf(lineage.states.back());
        best && best->latencyNs.value > 0)
        std::printf("\n%s. %s", lineage.states.back().id.c_str(),
                    gate::analysisText(gate::analyse(*best)).c_str());
    TextTable attempts({{"REJECTED"}, {"FROM"}, {"TITLE"}, {"REASON"}});
    for (const lineage::Attempt &attempt : lineage.attempts)
        attempts.addRow({attempt.id, attempt.parent, attempt.title, attempt.reason});
    if (!attempts.isEmpty())
        std::printf("\n%s", attempts.text().c_str());
    TextTable branches({{"BRANCH"}, {"FROM"}, {"FILE"}, {"VERDICT"}});
    for (const lineage::Branch &branch : lineage.branches)
        branches.addRow({branch.trial, branch.parent, branch.file,
                         gate::toString(lineage.findTrial(branch.trial)->verdict.status)});
    if (!branches.isEmpty())
        std::printf("\n%s", branches.text().c_str());
    for (const std::string &notice : lineage.notices)
        std::printf("\nNotice: %s\n", notice.c_str());
}

int show(const Session &session, const std::string &key)
{
    const auto lineages = chooseLineages(session, {key});
    if (!lineages)
        return lineages.error();
    if (session.json())
        session.print(details(lineages->front()));
    else
        printDetails(lineages->front());
    return exitOk;
}

int verify(const Session &session, const std::vector<std::string> &keys)
{
    const auto lineages = chooseLineages(session, keys);
    if (!lineages)
        return lineages.error();
    bool allOk = true;
    json out{{"lineages", json::array()}};
    for (const lineage::Lineage &lineage : *lineages) {
        const lineage::VerifyReport report = lineage::verifyLineage(lineage);
        allOk = allOk && report.ok();
        json findings = json::array();
        for (const lineage::VerifyFinding &finding : report.findings)
            findings.push_back({{"subject", finding.subject}, {"message", finding.message}});
        out["lineages"].push_back({{"lineage", lineage.key()},
                                   {"ok", report.ok()},
                                   {"checks", report.checks},
                                   {"findings", findings}});
        if (session.json())
            continue;
        std::printf("%s: %d checks, %s\n", lineage.key().c_str(), report.checks,
                    report.ok() ? "ok" : (std::to_string(report.findings.size()) + " findings").c_str());
        for (const lineage::VerifyFinding &finding : report.findings)
            std::printf("  %s%s%s\n", finding.subject.c_str(), finding.subject.empty() ? "" : ": ",
                        finding.message.c_str());
    }
    out["ok"] = allOk;
    if (session.json())
        session.print(out);
    return allOk ? exitOk : exitNegative;
}

int jobs(const Session &session, const std::vector<std::string> &keys)
{
    const auto lineages = chooseLineages(session, keys);
    if (!lineages)
        return lineages.error();
    json out{{"jobs", json::array()}};
    for (const lineage::Lineage &lineage : *lineages) {
        for (const lineage::RecordJob &job : lineage::recordJobs(lineage)) {
            if (session.json())
                out["jobs"].push_back(json::parse(lineage::writeRecordJob(job)));
            else
                std::printf("%s\n", lineage::writeRecordJob(job).c_str());
        }
    }
    if (session.json())
        session.print(out);
    return exitOk;
}

} // namespace

void addLineageCommands(CLI::App &app, Session &session)
{
    CLI::App *group = Session::addGroup(app, "lineage", "Lineages K0 → … → K* with their recorded trials");
    session.addVerb(*group, "list", "All lineages of the workspace",
                    [&session] { return listLineages(session); });

    const auto key = std::make_shared<std::string>();
    session
        .addVerb(*group, "show", "One lineage: states, transitions, rejected attempts, branches",
                 [&session, key] { return show(session, *key); })
        ->add_option("lineage", *key, "WORKLOAD/PLATFORM, as in sgemm/pocl")
        ->required();

    const auto verified = std::make_shared<std::vector<std::string>>();
    session
        .addVerb(*group, "verify",
                 "Check that files, trials and transitions hold together (exit status 1 if not)",
                 [&session, verified] { return verify(session, *verified); })
        ->add_option("lineages", *verified, "WORKLOAD/PLATFORM … (default: all)");

    const auto recorded = std::make_shared<std::vector<std::string>>();
    session
        .addVerb(
            *group, "jobs",
            "JSON lines for klineage-gate batch that record every state and attempt again (paths as --workspace)",
            [&session, recorded] { return jobs(session, *recorded); })
        ->add_option("lineages", *recorded, "WORKLOAD/PLATFORM … (default: all)");

    addNewLineage(*group, session);
    addArchiveImport(*group, session);
    addLineageExport(*group, session);
    addRederiveCommand(*group, session);
    addRoundtripCommand(*group, session);
    addExplainCommand(*group, session);
    addCommentsCommand(*group, session);
    addWalksCommand(*group, session);

    const auto shown = std::make_shared<std::vector<std::string>>();
    const auto csv = std::make_shared<std::string>();
    CLI::App *table = session.addVerb(
        *group, "table", "Latency and speedups of every state, with 95 % intervals", [&session, shown, csv] {
            const auto lineages = chooseLineages(session, *shown);
            if (!lineages)
                return lineages.error();
            return csv->empty() ? printLineageTables(session, *lineages)
                                : writeLineageCsv(session, *lineages, *csv);
        });
    table->add_option("lineages", *shown, "WORKLOAD/PLATFORM … (default: all)");
    table->add_option("--csv", *csv,
                      "Write states and rejected attempts into this file instead; - is stdout");
}

} // namespace klineage::cli
