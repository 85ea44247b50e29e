// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/format.h"
#include "app/cli/texttable.h"

#include "core/lineage/walk.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace klineage::cli {

using lineage::Walk;
using nlohmann::json;

namespace {

std::string keyOf(const Walk &walk)
{
    return walk.workload + '/' + walk.name;
}

/// What the step up to a state is; nothing for the lowest one.
const lineage::Transition *stepTo(const Walk &walk, std::size_t state)
{
    return state == 0 ? nullptr : &walk.transitions[state - 1];
}

json walkJson(const Walk &walk)
{
    json out{{"walk", keyOf(walk)},     {"workload", walk.workload}, {"platform", walk.platform},
             {"title", walk.title},     {"origin", walk.origin},     {"commit", walk.commit},
             {"file", walk.file},       {"licence", walk.licence},   {"author", walk.author},
             {"states", json::array()}, {"notices", walk.notices}};
    for (std::size_t i = 0; i < walk.states.size(); ++i) {
        const lineage::WalkState &state = walk.states[i];
        const gate::Trial *trial = walk.trialOf(state);
        const lineage::Transition *step = stepTo(walk, i);
        out["states"].push_back(
            {{"id", state.id},
             {"title", state.title},
             {"sha256", state.sha256},
             {"trial", trial ? json(trial->id) : json()},
             {"status", trial ? json(gate::toString(trial->verdict.status)) : json()},
             {"latency_ns", trial && trial->latencyNs.value > 0 ? jsonOf(trial->latencyNs) : json()},
             {"speedup_to_parent", jsonOf(walk.gainOf(i))},
             {"category", step ? json(step->category) : json()},
             {"summary", step ? json(step->summary) : json()},
             {"card", step && !step->card.empty() ? json(step->card) : json()}});
    }
    return out;
}

void printWalk(const Walk &walk)
{
    std::printf("%s  %s, on %s\n  %s, %s\n  by %s; %s, commit %s\n", keyOf(walk).c_str(), walk.title.c_str(),
                walk.platform.c_str(), walk.origin.c_str(), walk.file.c_str(), walk.author.c_str(),
                walk.licence.c_str(), walk.commit.c_str());
    constexpr auto right = TextTable::Align::Right;
    TextTable table({{"STATE"}, {"TITLE"}, {"VERDICT"}, {"LATENCY", right}, {"TO PARENT", right}, {"CARD"}});
    for (std::size_t i = walk.states.size(); i-- > 0;) {
        const lineage::WalkState &state = walk.states[i];
        const gate::Trial *trial = walk.trialOf(state);
        const lineage::Transition *step = stepTo(walk, i);
        const bool isTimed = trial && trial->latencyNs.value > 0;
        table.addRow({state.id, state.title, trial ? gate::toString(trial->verdict.status) : "not gated",
                      isTimed ? formatLatency(trial->latencyNs) : "–", formatSpeedup(walk.gainOf(i)),
                      step && !step->card.empty() ? step->card : "–"});
    }
    std::printf("%s", table.text(2).c_str());
    for (const std::string &notice : walk.notices)
        std::printf("  %s\n", notice.c_str());
}

int walks(const Session &session, const std::vector<std::string> &wanted)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    std::vector<Walk> found;
    std::vector<std::string> known;
    bool isWhole = true;
    for (const workload::Workload &workload : workspace->workloads) {
        for (Result<Walk> &walk : lineage::readWalks(workspace->root / "workloads" / workload.name)) {
            if (!walk) {
                std::fprintf(stderr, "klineage-cli: %s\n", walk.error().message.c_str());
                isWhole = false;
                continue;
            }
            known.push_back(keyOf(*walk));
            if (wanted.empty() || std::find(wanted.begin(), wanted.end(), known.back()) != wanted.end())
                found.push_back(std::move(*walk));
        }
    }
    for (const std::string &key : wanted) {
        if (std::find(known.begin(), known.end(), key) == known.end())
            return session.unknownName("walk", key, known);
    }
    isWhole =
        isWhole && std::all_of(found.begin(), found.end(), [](const Walk &w) { return w.notices.empty(); });
    if (session.json()) {
        json out{{"walks", json::array()}};
        for (const Walk &walk : found)
            out["walks"].push_back(walkJson(walk));
        session.print(out);
    } else if (found.empty()) {
        std::printf("There are no walks of others' kernels.\n");
    } else {
        for (std::size_t i = 0; i < found.size(); ++i) {
            std::printf("%s", i == 0 ? "" : "\n");
            printWalk(found[i]);
        }
    }
    return isWhole ? exitOk : exitNegative;
}

} // namespace

void addWalksCommand(CLI::App &group, Session &session)
{
    const auto keys = std::make_shared<std::vector<std::string>>();
    session
        .addVerb(
            group, "walks",
            "Experts of others that were taken apart elsewhere: origin, licence, steps and verdicts, no code",
            [&session, keys] { return walks(session, *keys); })
        ->add_option("walks", *keys, "WORKLOAD/NAME … (default: all)");
}

} // namespace klineage::cli
