// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/runstart.h"

#include "core/base/suggest.h"
#include "core/files/atomicfile.h"
#include "core/llm/makeprovider.h"
#include "core/policy/cardtext.h"
#include "core/policy/policy.h"
#include "core/run/runid.h"
#include "core/run/summary.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace klineage::cli {

namespace fs = std::filesystem;

namespace {

using Exit = tl::unexpected<int>;

std::vector<std::string> partsOf(const std::string &name)
{
    std::vector<std::string> parts(1);
    for (const char c : name) {
        if (c == '/')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

/// "workload/platform" or "workload/platform/state" of the workspace: nullptr when it is none.
const lineage::Lineage *lineageIn(const Workspace &workspace, const std::string &name)
{
    const std::vector<std::string> parts = partsOf(name);
    return parts.size() == 2 || parts.size() == 3 ? workspace.findLineage(parts[0] + '/' + parts[1])
                                                  : nullptr;
}

void takeScope(const lineage::Lineage &lineage, run::Settings &settings)
{
    if (settings.workload.empty())
        settings.workload = lineage.workload;
    if (settings.platform.empty())
        settings.platform = lineage.platform;
    settings.surface = kernel::toString(lineage.surface);
}

/// The best candidate of an earlier run, as a file of the workspace.
tl::expected<void, int> takeRun(const Session &session, const Workspace &workspace, const std::string &id,
                                run::Settings &settings)
{
    const Result<run::RunRecord> record = run::readRun(workspace.root / "runs" / id);
    if (!record)
        return Exit(session.usage(record.error().message));
    const run::Summary summary = run::summarize(*record);
    if (summary.candidate.empty())
        return Exit(session.usage("The run '" + id + "' has no correct candidate to begin with."));
    settings.workload = record->settings.workload;
    settings.platform = record->settings.platform;
    settings.surface = record->settings.surface;
    const kernel::Surface surface =
        kernel::surfaceFromString(settings.surface).value_or(kernel::Surface::OpenCl);
    settings.subject = "runs/" + id + '/' + run::candidateFileName(summary.candidate, surface);
    return {};
}

/// A candidate file: its surface is written in it; the platform is that of the workload's only lineage on it, unless it was said.
tl::expected<void, int> takeFile(const Session &session, const Workspace &workspace, run::Settings &settings)
{
    const Result<kernel::Candidate> candidate = kernel::readCandidate(settings.subject);
    if (!candidate)
        return Exit(session.usage(candidate.error().message));
    if (settings.workload.empty())
        return Exit(session.usage("'" + settings.subject + "' is a file: say its workload with --workload."));
    std::error_code ignored;
    settings.subject = fs::absolute(settings.subject, ignored).string();
    settings.surface = kernel::toString(candidate->surface);
    if (!settings.platform.empty())
        return {};
    std::vector<std::string> platforms;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        const bool isKnown =
            std::find(platforms.begin(), platforms.end(), lineage.platform) != platforms.end();
        if (lineage.workload == settings.workload && lineage.surface == candidate->surface && !isKnown)
            platforms.push_back(lineage.platform);
    }
    if (platforms.size() != 1)
        return Exit(session.usage("Say the platform with --platform, as in pocl or sm90."));
    settings.platform = platforms.front();
    return {};
}

tl::expected<void, int> takeSubject(const Session &session, const Workspace &workspace,
                                    const StartOptions &options, run::Settings &settings)
{
    constexpr std::string_view runPrefix = "run:";
    std::error_code ignored;
    if (options.subject.starts_with(runPrefix))
        return takeRun(session, workspace, options.subject.substr(runPrefix.size()), settings);
    if (const lineage::Lineage *lineage = lineageIn(workspace, options.subject)) {
        const std::vector<std::string> parts = partsOf(options.subject);
        if (parts.size() == 3 && !lineage->findState(parts[2])) {
            std::vector<std::string> known;
            for (const lineage::State &state : lineage->states)
                known.push_back(state.id);
            return Exit(session.unknownName("state of " + lineage->key(), parts[2], known));
        }
        if (parts.size() == 2 && settings.kind == run::Kind::Materialize)
            settings.subject += '/' + lineage->states.front().id; // the naive state
        takeScope(*lineage, settings);
        return {};
    }
    if (fs::is_regular_file(options.subject, ignored))
        return takeFile(session, workspace, settings);
    if (settings.kind == run::Kind::Admit || settings.kind == run::Kind::Lift) {
        // A card, or what the procedure itself makes of it; where it is tried is another option.
        const auto target = settings.options.find("target");
        if (target != settings.options.end()) {
            if (const lineage::Lineage *lineage = lineageIn(workspace, target->second))
                takeScope(*lineage, settings);
        }
        return {};
    }
    std::vector<std::string> known;
    for (const lineage::Lineage &lineage : workspace.lineages)
        known.push_back(lineage.key());
    return Exit(session.unknownName("lineage, file or run", options.subject, known));
}

tl::expected<void, int> takeOptions(const Session &session, const StartOptions &options,
                                    run::Settings &settings)
{
    for (const std::string &assignment : options.options) {
        const std::size_t equals = assignment.find('=');
        if (equals == 0 || equals == std::string::npos)
            return Exit(session.usage("'" + assignment + "' is no option of a run; expected NAME=VALUE."));
        settings.options[assignment.substr(0, equals)] = assignment.substr(equals + 1);
    }
    if (options.hypotheses)
        settings.options["hypotheses"] = "yes";
    if (options.heldOut)
        settings.options["held_out"] = "yes";
    if (options.noAudit)
        settings.options["audit"] = "no";
    const auto put = [&settings](const char *key, const std::string &value) {
        if (!value.empty())
            settings.author[key] = value;
    };
    put("command", options.command);
    put("base_url", options.baseUrl);
    std::error_code ignored;
    put("transcript",
        options.transcript.empty() ? std::string() : fs::absolute(options.transcript, ignored).string());
    put("paid", options.paid);
    return {};
}

} // namespace

void addAuthorOptions(CLI::App &verb, StartOptions &options)
{
    verb.add_option("--provider", options.provider, "Who answers")
        ->required()
        ->check(CLI::IsMember(llm::providerNames()));
    verb.add_option("--model", options.model, "As the server names it");
    verb.add_option("--command", options.command,
                    "exec: the program that answers, run by sh in the workspace");
    verb.add_option("--base-url", options.baseUrl,
                    "anthropic, openai: another server, as in http://127.0.0.1:8000/v1");
    verb.add_option("--transcript", options.transcript, "replay: a transcript.jsonl");
    verb.add_option("--paid", options.paid, "Whether replies cost the table's prices")
        ->check(CLI::IsMember({"yes", "no"}));
    verb.add_option("--cap", options.cap, "Dollars that the run may cost at most")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
    verb.add_option("--id", options.id, "Name of the run (default: made from workload, policy and time)");
    verb.add_option("--launcher", options.launcher,
                    "Start the gate through this command, as in \"ssh HOST\"");
}

void addStartOptions(CLI::App &verb, StartOptions &options)
{
    verb.add_option(
            "subject", options.subject,
            "What to begin with: WORKLOAD/LINEAGE/STATE, run:ID (its best candidate), a candidate file; "
            "for admit a card")
        ->required();
    verb.add_option("--kind", options.kind, "materialize, deoptimize, lift or admit")
        ->check(CLI::IsMember({"materialize", "deoptimize", "lift", "admit"}))
        ->capture_default_str();
    verb.add_option("--policy", options.policy, "Search policy of a materialization")
        ->check(CLI::IsMember(policy::policyNames()))
        ->capture_default_str();
    verb.add_option("--workload", options.workload, "Name of the workload (for a file)");
    verb.add_option("--platform", options.platform, "Platform, as in pocl or sm90 (for a file)");
    addAuthorOptions(verb, options);
    verb.add_option("--steps", options.steps, "Questions at most (0: until the budget or the policy ends it)")
        ->check(CLI::Range(0, 1'000'000))
        ->capture_default_str();
    verb.add_option("--seed", options.seed, "Number of the attempt")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb.add_option("--option", options.options,
                    "NAME=VALUE: patience, repairs, seeds, rounds, profile_seconds, timeout_seconds, "
                    "max_output_tokens, most_cards … (repeatable)");
    verb.add_flag("--hypotheses", options.hypotheses, "Show cards that no roundtrip has admitted too");
    verb.add_flag("--held-out", options.heldOut, "Leave out cards that rest on the workload's own lineages");
    verb.add_flag("--no-audit", options.noAudit, "Do not gate the best candidate again at the end");
    verb.add_flag("--estimate", options.estimateOnly, "Say what it will probably cost, and start nothing");
}

tl::expected<run::Settings, int> settingsFor(const Session &session, const Workspace &workspace,
                                             const StartOptions &options)
{
    run::Settings settings;
    settings.kind = run::kindFromString(options.kind).value_or(run::Kind::Materialize);
    settings.workload = options.workload;
    settings.platform = options.platform;
    settings.subject = options.subject;
    settings.provider = options.provider;
    settings.model = options.model;
    settings.capDollars = options.cap;
    settings.maxSteps = options.steps;
    settings.seed = static_cast<std::uint64_t>(options.seed);
    if (settings.kind == run::Kind::Materialize)
        settings.policy = options.policy;
    if (auto taken = takeOptions(session, options, settings); !taken)
        return Exit(taken.error());
    if (auto taken = takeSubject(session, workspace, options, settings); !taken)
        return Exit(taken.error());
    if (!settings.workload.empty() && !workspace.findWorkload(settings.workload)) {
        std::vector<std::string> known;
        for (const workload::Workload &other : workspace.workloads)
            known.push_back(other.name);
        return Exit(session.unknownName("workload", settings.workload, known));
    }
    if (settings.model.empty() && llm::needsModel(settings.provider))
        return Exit(session.usage("The provider '" + settings.provider + "' needs a --model."));
    if (settings.provider == "exec" && options.command.empty())
        return Exit(session.usage("The provider 'exec' needs a --command."));
    if (settings.provider == "replay" && options.transcript.empty())
        return Exit(session.usage("The provider 'replay' needs a --transcript."));
    settings.id = options.id.empty() ? run::freshRunId(workspace.root / "runs", settings) : options.id;
    return settings;
}

tl::expected<std::optional<run::Estimate>, int> estimateFor(const Session &session,
                                                            const Workspace &workspace,
                                                            const run::Settings &settings)
{
    if (settings.kind != run::Kind::Materialize)
        return std::nullopt;
    const auto paid = settings.author.find("paid");
    const bool isPaid = paid != settings.author.end()
                            ? paid->second == "yes"
                            : settings.provider == "anthropic" || settings.provider == "openai";
    const Result<llm::PriceTable> prices = llm::loadPrices(workspace.root);
    if (!prices)
        return Exit(session.fail(prices.error()));
    std::size_t rootBytes = 0;
    std::error_code ignored;
    const workload::Workload *workload = workspace.findWorkload(settings.workload);
    if (workload)
        rootBytes += fs::file_size(workload->directory / "workload.toml", ignored);
    const std::vector<std::string> parts = partsOf(settings.subject);
    if (const lineage::Lineage *lineage = lineageIn(workspace, settings.subject);
        lineage && parts.size() == 3) {
        if (const lineage::State *state = lineage->findState(parts[2]))
            rootBytes += fs::file_size(lineage->directory / state->file, ignored);
    } else if (fs::is_regular_file(settings.subject, ignored)) {
        rootBytes += fs::file_size(settings.subject, ignored);
    }
    // At most what the library has of admitted cards of the language: which of them fit is only known when the run begins.
    std::size_t cardBytes = 0;
    if (policy::usesCards(settings.policy, settings.options)) {
        for (const skills::CardRecord &record : workspace.cards) {
            const std::vector<std::string> &languages = record.card.scope.languages;
            if (record.life() == skills::Life::Admitted
                && std::find(languages.begin(), languages.end(), settings.surface) != languages.end())
                cardBytes += policy::cardText(record).size();
        }
    }
    Result<std::optional<run::Estimate>> estimate =
        run::estimateCost(settings, isPaid, *prices, rootBytes, cardBytes);
    if (!estimate)
        return Exit(session.fail(estimate.error()));
    return *estimate;
}

} // namespace klineage::cli
