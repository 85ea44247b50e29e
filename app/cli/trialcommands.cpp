// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/byfiles.h"
#include "app/cli/commands.h"
#include "app/cli/format.h"
#include "app/cli/texttable.h"

#include "core/lineage/record.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct ImportOptions {
    std::string file;
    std::string lineage;
    bool assign = false;
};

/// Imports record by record into lineages that are kept up to date; what could not be imported is said once each.
class Importer
{
public:
    Importer(Workspace workspace, std::string lineageKey)
        : m_workspace(std::move(workspace))
        , m_lineageKey(std::move(lineageKey))
    {}

    void add(const BatchRecord &record)
    {
        const gate::Trial &trial = record.trial;
        const std::string key =
            m_lineageKey.empty() ? trial.workload + '/' + trial.environment.platform : m_lineageKey;
        const lineage::Lineage *lineage = m_workspace.findLineage(key);
        if (!lineage) {
            m_problems.push_back(record.where + ": there is no lineage " + key + " for trial " + trial.id
                                 + '.');
            return;
        }
        if (!m_seen.insert(trial.id).second) {
            ++m_duplicates;
            return;
        }
        const Result<lineage::RecordOutcome> outcome =
            lineage::recordTrial(*lineage, trial, record.candidateText);
        if (!outcome) {
            m_problems.push_back(record.where + ": " + outcome.error().message);
        } else if (*outcome == lineage::RecordOutcome::UnknownCandidate) {
            m_problems.push_back(record.where + ": trial " + trial.id + " measured a candidate ("
                                 + trial.candidate.substr(0, 12) + "…) that is no file of " + key
                                 + ", and its text did not come with it.");
        } else if (*outcome == lineage::RecordOutcome::Duplicate) {
            ++m_duplicates;
            m_ids[key].push_back(trial.id); // still to be assigned, when that is asked for
        } else {
            ++m_added[key];
            m_ids[key].push_back(trial.id);
        }
    }

    /// Rewrites lineage.toml where the imported trials stand for states and attempts.
    void assign()
    {
        for (const auto &[key, ids] : m_ids) {
            const lineage::Lineage *lineage = m_workspace.findLineage(key);
            Result<std::vector<std::string>> changed = lineage::assignTrials(lineage->directory, ids);
            if (changed)
                m_assigned[key] = std::move(*changed);
            else
                m_problems.push_back(changed.error().message);
        }
    }

    [[nodiscard]] json report() const
    {
        return {{"added", m_added.empty() ? json::object() : json(m_added)},
                {"duplicates", m_duplicates},
                {"assigned", m_assigned.empty() ? json::object() : json(m_assigned)},
                {"problems", m_problems}};
    }
    void printReport() const
    {
        for (const auto &[key, count] : m_added)
            std::printf("%s: %d trials added\n", key.c_str(), count);
        for (const auto &[key, ids] : m_assigned)
            std::printf("%s: %zu states and attempts have new trials\n", key.c_str(), ids.size());
        std::printf("%d were there already, %zu problems\n", m_duplicates, m_problems.size());
        for (const std::string &problem : m_problems)
            std::fprintf(stderr, "klineage-cli: %s\n", problem.c_str());
    }
    [[nodiscard]] bool hasProblems() const { return !m_problems.empty(); }
    void addProblems(const std::vector<std::string> &problems)
    {
        m_problems.insert(m_problems.end(), problems.begin(), problems.end());
    }

private:
    Workspace m_workspace;
    std::string m_lineageKey;
    std::set<std::string> m_seen;
    std::map<std::string, int> m_added;
    std::map<std::string, std::vector<std::string>> m_ids;
    std::map<std::string, std::vector<std::string>> m_assigned;
    int m_duplicates = 0;
    std::vector<std::string> m_problems;
};

int importTrials(const Session &session, const ImportOptions &options)
{
    Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    if (!options.lineage.empty() && !workspace->findLineage(options.lineage))
        return session.unknownName("lineage", options.lineage, workspace->lineageKeys());
    const auto batch = readBatch(session, options.file);
    if (!batch)
        return batch.error();
    Importer importer(std::move(*workspace), options.lineage);
    for (const BatchRecord &record : batch->records)
        importer.add(record);
    importer.addProblems(batch->problems);
    if (options.assign)
        importer.assign();
    if (session.json())
        session.print(importer.report());
    else
        importer.printReport();
    return importer.hasProblems() ? exitNegative : exitOk;
}

int listTrials(const Session &session, const std::vector<std::string> &keys)
{
    const auto lineages = chooseLineages(session, keys);
    if (!lineages)
        return lineages.error();
    json out{{"trials", json::array()}};
    TextTable table({{"TRIAL"},
                     {"TIME"},
                     {"LINEAGE"},
                     {"FILE"},
                     {"VERDICT"},
                     {"LATENCY", TextTable::Align::Right},
                     {"DEVICE"}});
    for (const lineage::Lineage &lineage : *lineages) {
        for (const gate::Trial &trial : lineage.trials) {
            const bool timed = trial.latencyNs.value > 0;
            out["trials"].push_back({{"id", trial.id},
                                     {"time", trial.time},
                                     {"lineage", lineage.key()},
                                     {"file", trial.file},
                                     {"candidate", trial.candidate},
                                     {"status", gate::toString(trial.verdict.status)},
                                     {"stage", gate::toString(trial.verdict.stage)},
                                     {"reason", trial.verdict.reason},
                                     {"latency_ns", timed ? jsonOf(trial.latencyNs) : json()},
                                     {"device", trial.environment.device}});
            table.addRow({trial.id, trial.time, lineage.key(), trial.file,
                          gate::toString(trial.verdict.status), formatLatency(trial.latencyNs),
                          trial.environment.device});
        }
    }
    if (session.json())
        session.print(out);
    else
        std::printf("%s", table.isEmpty() ? "There are no trials.\n" : table.text().c_str());
    return exitOk;
}

} // namespace

void addTrialCommands(CLI::App &app, Session &session)
{
    CLI::App *group = Session::addGroup(app, "trials", "Recorded runs of the gate");
    const auto options = std::make_shared<ImportOptions>();
    CLI::App *verb = session.addVerb(
        *group, "import", "Add the trials of a batch to their lineages (exit status 1 on problems)",
        [&session, options] { return importTrials(session, *options); });
    verb->add_option("file", options->file, "JSON lines, as klineage-gate batch writes them")->required();
    verb->add_option("--lineage", options->lineage,
                     "Lineage to add to (default: by workload and platform of the trial)");
    verb->add_flag("--assign", options->assign,
                   "Make them the trials of the states and attempts they measured (rewrites lineage.toml)");

    const auto keys = std::make_shared<std::vector<std::string>>();
    session
        .addVerb(*group, "list", "Recorded trials, oldest first",
                 [&session, keys] { return listTrials(session, *keys); })
        ->add_option("lineages", *keys, "WORKLOAD/PLATFORM … (default: all)");
}

} // namespace klineage::cli
