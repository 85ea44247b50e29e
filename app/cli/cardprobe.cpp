// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cardprobe.h"

#include "app/cli/cards.h"
#include "app/cli/gaterequest.h"
#include "app/cli/interrupt.h"
#include "app/cli/poolchoice.h"

#include "core/pool/gatepool.h"
#include "core/skills/probes.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct ProbeOptions : GateChoice {
    std::string card;
    std::string risk;
    std::string trial;
    std::string text;
    std::string author;
    std::vector<std::string> expected;
    PoolChoice pool;
};

/// What a risk can come true as: the gate's word for a candidate that is not right, or what it cost.
constexpr std::array outcomes{"wrong",  "crash",   "compile_error", "timeout",
                              "unsafe", "suspect", "no_gain",       "loss"};

/// A trial, and what it says.
struct Judged {
    gate::Trial trial;
    skills::Finding finding;
};

tl::expected<Judged, int> recordedTrial(const Session &session, const Workspace &workspace,
                                        const ProbeOptions &options)
{
    if (const gate::Trial *trial = workspace.findTrial(options.trial))
        return Judged{*trial, skills::findingOf(*trial, options.expected)};
    return tl::unexpected(
        session.usage("No lineage of this workspace has a trial '" + options.trial
                      + "'. `trials import` records what a gate elsewhere judged; a file is gated here."));
}

/// Gates the file, and records the trial when it says something.
tl::expected<Judged, int> newTrial(const Session &session, const Workspace &workspace,
                                   const ProbeOptions &options)
{
    auto request = requestFor(session, workspace, options);
    if (!request)
        return tl::unexpected(request.error());
    request->quick = false;
    request->withReference = false; // a risk is judged against the parent
    const InterruptWatcher interrupts;
    const auto pool = openPool(session, options.pool);
    if (!pool)
        return tl::unexpected(pool.error());
    Result<gate::Trial> trial = (*pool)->run(*request, interrupts.token(), {});
    if (!trial)
        return tl::unexpected(session.fail(trial.error()));
    Judged judged{*trial, skills::findingOf(*trial, options.expected)};
    if (!judged.finding.problem.empty())
        return judged; // no evidence to keep
    if (const Result<std::string> recorded = recordInLineage(workspace, *trial, request->candidateText);
        !recorded)
        return tl::unexpected(session.fail(recorded.error()));
    return judged;
}

int probe(const Session &session, const ProbeOptions &options)
{
    if (options.file.empty() == options.trial.empty())
        return session.usage("Name either a candidate that violates the precondition or --trial.");
    if (!options.file.empty() && options.workload.empty())
        return session.usage("--workload says what the candidate is for.");
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    const skills::CardStore store(workspace->root / "skills");
    Result<skills::CardRecord> record = store.read(options.card);
    if (!record)
        return failStore(session, store, options.card, record.error());
    const Result<std::size_t> risk = skills::findRisk(record->card, options.risk);
    if (!risk)
        return session.usage(risk.error().message);

    const auto judged = options.trial.empty() ? newTrial(session, *workspace, options)
                                              : recordedTrial(session, *workspace, options);
    if (!judged)
        return judged.error();
    const auto &[trial, finding] = *judged;
    if (!finding.problem.empty()) {
        session.fail({ErrorCode::InvalidInput, "Nothing was recorded. " + finding.problem, {}});
        return exitNegative;
    }
    skills::Probe shown;
    shown.text = options.text;
    shown.trial = trial.id;
    shown.verdict = finding.outcome;
    shown.refutes = finding.refutes;
    skills::addProbe(record->card, *risk, shown);
    const std::string author = options.author.empty() ? defaultAuthor() : options.author;
    const Result<skills::CardRecord> saved =
        store.save(record->card, author, "Probed the risk '" + record->card.risks[*risk].id + "'.");
    if (!saved)
        return failStore(session, store, options.card, saved.error());
    const skills::Claim &claim = saved->card.risks[*risk];
    if (session.json())
        session.print({{"card", options.card},
                       {"risk", claim.id},
                       {"trial", trial.id},
                       {"verdict", finding.outcome},
                       {"refutes", finding.refutes},
                       {"standing", toString(skills::standingOf(saved->card, claim))}});
    else
        std::printf("%s: '%s' is %s: trial %s says %s. %s\n", options.card.c_str(), claim.id.c_str(),
                    toString(skills::standingOf(saved->card, claim)), trial.id.c_str(),
                    finding.outcome.c_str(), trial.verdict.message.c_str());
    return exitOk;
}

} // namespace

void addProbeCommand(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<ProbeOptions>();
    CLI::App *verb = session.addVerb(group, "probe",
                                     "Violate a precondition on purpose and keep the verdict with the risk",
                                     [&session, options] { return probe(session, *options); });
    verb->add_option("card", options->card, "Name of the card")->required();
    verb->add_option("risk", options->risk, "Id of the risk, or its place among the card's from 1")
        ->required();
    verb->add_option("file", options->file,
                     "Candidate that violates the precondition; its trial is recorded");
    verb->add_option("--trial", options->trial, "A recorded trial of such a candidate instead");
    verb->add_option("--workload", options->workload, "Workload of the candidate");
    verb->add_option("--parent", options->parent,
                     "Compare with this state of the lineage, as in K03, or with a file");
    verb->add_option("--lineage", options->lineage, "Lineage of --parent (default: the one that fits)");
    verb->add_option(
            "--expect", options->expected,
            "What the risk says comes of it (repeatable); a correct candidate that does not refutes it")
        ->required()
        ->check(CLI::IsMember(std::vector<std::string>(outcomes.begin(), outcomes.end())))
        ->allow_extra_args(false); // what follows one may be the file
    verb->add_option("--text", options->text, "What was violated, in a sentence")->required();
    verb->add_option("--author", options->author, "Who probes (default: git's user.name, then the user)");
    verb->add_option("--timeout", options->timeoutSeconds, "Deadline of the whole trial, seconds")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    addPoolOptions(*verb, options->pool);
}

} // namespace klineage::cli
