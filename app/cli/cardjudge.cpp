// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cardjudge.h"

#include "core/base/numbertext.h"
#include "core/run/admit/effect.h"
#include "core/skills/admission.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace klineage::cli {

using nlohmann::json;
using skills::CardRecord;

namespace {

struct Judgement {
    bool counts = false;
    std::string text; ///< a sentence
};

/// What the recorded trial of a roundtrip says of the card as it stands today.
Judgement judge(const Workspace &workspace, const CardRecord &record, const skills::Verification &run,
                const std::string &hash)
{
    const gate::Trial *trial = workspace.findTrial(run.trial);
    if (!trial)
        return {false, "Its trial is in no lineage of the workspace."};
    const gate::Comparison *comparison = trial->comparison("parent");
    if (trial->verdict.status != gate::VerdictStatus::Correct || !comparison)
        return {false, std::string("Its trial is ") + gate::toString(trial->verdict.status) + '.'};
    const std::string figures = fixedText(comparison->speedup.value, 3) + "× ("
                                + fixedText(comparison->speedup.low, 3) + "–"
                                + fixedText(comparison->speedup.high, 3) + ")";
    const std::string shortfall = run::effectShortfall(run::typedFactors(record.card), comparison);
    if (!shortfall.empty())
        return {false, figures + ": " + shortfall + '.'};
    if (!run.heldOut)
        return {false, figures + " is the effect, but the target had a part in the card."};
    if (!skills::counts(run, record, hash))
        return {
            false,
            figures
                + " is the effect, but of another text of the card: the line names none, or not this one."};
    return {true, figures + " is the effect."};
}

int judgeCards(const Session &session, const std::vector<std::string> &names)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    for (const std::string &name : names) {
        if (!workspace->findCard(name))
            return session.unknownName("card", name, workspace->cardNames());
    }
    json out{{"cards", json::array()}};
    for (const std::string &name : names.empty() ? workspace->cardNames() : names) {
        const CardRecord &record = *workspace->findCard(name);
        const skills::Admission admission = skills::admissionOf(record);
        json lines = json::array();
        if (!session.json())
            std::printf("%s: %s\n", name.c_str(), admission.reason.c_str());
        const std::string hash = skills::contentHash(record);
        for (const skills::Verification &run : record.verifications) {
            const Judgement judgement = judge(*workspace, record, run, hash);
            lines.push_back({{"target", run.target},
                             {"trial", run.trial},
                             {"counts", judgement.counts},
                             {"reason", judgement.text}});
            if (!session.json())
                std::printf("  %s: %s\n", run.target.c_str(), judgement.text.c_str());
        }
        out["cards"].push_back({{"name", name},
                                {"life", skills::toString(admission.life)},
                                {"reason", admission.reason},
                                {"roundtrips", lines}});
    }
    if (session.json())
        session.print(out);
    return exitOk;
}

} // namespace

void addJudgeCommand(CLI::App &group, Session &session)
{
    const auto names = std::make_shared<std::vector<std::string>>();
    CLI::App *verb = session.addVerb(
        group, "judge",
        "Recorded roundtrips against the cards' typed effects: what admits, what does not, and why",
        [&session, names] { return judgeCards(session, *names); });
    verb->add_option("cards", *names, "Names (default: all)");
}

} // namespace klineage::cli
