// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/runstart.h"

#include "core/llm/makeprovider.h"
#include "core/policy/policy.h"
#include "core/run/drive/start.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace klineage::cli {

namespace {

using Exit = tl::unexpected<int>;

/// Wrong options and unknown names.
Exit refused(const Session &session, const Error &error)
{
    static_cast<void>(session.fail(error));
    return Exit(exitUsage);
}

} // namespace

void addServerOptions(CLI::App &verb, std::string &baseUrl, std::map<std::string, std::string> &toServer)
{
    verb.add_option(
        "--base-url", baseUrl,
        "anthropic, openai: another server, as in http://127.0.0.1:8000/v1. http goes to this "
        "machine and to the own_hosts of models.toml, whose replies cost nothing unless --paid yes");
    verb.add_option("--temperature", toServer["temperature"],
                    "From 0 to 2; left to the server when neither this nor models.toml says it");
    verb.add_option("--effort", toServer["effort"], "How much to think, as in low, medium, high; the same");
    verb.add_option(
        "--extra-body", toServer["extra_body"],
        "JSON object whose members go into the request's body, as in '{\"top_k\": 20}'; the same");
}

void addAuthorOptions(CLI::App &verb, StartOptions &options)
{
    verb.add_option("--provider", options.provider, "Who answers")
        ->required()
        ->check(CLI::IsMember(llm::providerNames()));
    verb.add_option("--model", options.model, "As the server names it");
    verb.add_option("--command", options.command,
                    "exec: the program that answers, run by sh in the workspace");
    addServerOptions(verb, options.baseUrl, options.toServer);
    verb.add_option("--transcript", options.transcript, "replay: a transcript.jsonl");
    verb.add_option("--paid", options.paid, "Whether replies cost the table's prices")
        ->check(CLI::IsMember({"yes", "no"}));
    verb.add_option("--cap", options.cap, "Dollars that the run may cost at most")
        ->check(CLI::Range(0.0, run::mostCapDollars))
        ->capture_default_str();
    verb.add_option("--id", options.id, "Name of the run (default: made from workload, policy and time)");
    addPoolOptions(verb, options.pool);
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
        ->check(CLI::Range(run::materializeSteps.least, run::materializeSteps.most))
        ->capture_default_str();
    verb.add_option("--seed", options.seed, "Number of the attempt")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb.add_option(
        "--option", options.options,
        "NAME=VALUE: patience, repairs, seeds, rounds, profile_seconds, timeout_seconds, "
        "max_output_tokens, most_cards …; cards=yes for a search with cards; what kernel-smith, kernelpro, "
        "adaexplore and accelopt are set with: core/policy/README.md (repeatable)");
    verb.add_flag("--hypotheses", options.hypotheses, "Show cards that no roundtrip has admitted too");
    verb.add_flag("--held-out", options.heldOut, "Leave out cards that rest on the workload's own lineages");
    verb.add_flag("--no-audit", options.noAudit, "Do not gate the best candidate again at the end");
    verb.add_flag("--estimate", options.estimateOnly, "Say what it will probably cost, and start nothing");
}

namespace {

tl::expected<run::Settings, int> settingsFor(const Session &session, const Workspace &workspace,
                                             const StartOptions &options)
{
    run::StartRequest request;
    request.kind = run::kindFromString(options.kind).value_or(run::Kind::Materialize);
    request.subject = options.subject;
    request.policy = options.policy;
    request.workload = options.workload;
    request.platform = options.platform;
    request.provider = options.provider;
    request.model = options.model;
    request.capDollars = options.cap;
    request.maxSteps = options.steps;
    request.seed = static_cast<std::uint64_t>(options.seed);
    request.id = options.id;
    request.fieldPrefix = "--";
    for (const std::string &assignment : options.options) {
        const std::size_t equals = assignment.find('=');
        if (equals == 0 || equals == std::string::npos)
            return Exit(session.usage("'" + assignment + "' is no option of a run; expected NAME=VALUE."));
        request.options[assignment.substr(0, equals)] = assignment.substr(equals + 1);
    }
    if (options.hypotheses)
        request.options["hypotheses"] = "yes";
    if (options.heldOut)
        request.options["held_out"] = "yes";
    if (options.noAudit)
        request.options["audit"] = "no";
    request.author = {{"command", options.command},
                      {"base_url", options.baseUrl},
                      {"transcript", options.transcript},
                      {"paid", options.paid}};
    for (const auto &[key, value] : options.toServer)
        request.author[key] = value;
    Result<run::Settings> settings = run::startSettings(workspace, request);
    if (!settings)
        return refused(session, settings.error());
    return std::move(*settings);
}

} // namespace

tl::expected<PreparedRun, int> prepareRun(const Session &session, const StartOptions &options)
{
    Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return Exit(session.fail(workspace.error()));
    auto settings = settingsFor(session, *workspace, options);
    if (!settings)
        return Exit(settings.error());
    Result<std::optional<run::Estimate>> estimate = run::startEstimate(*workspace, *settings);
    if (!estimate)
        return Exit(session.fail(estimate.error()));
    if (*estimate)
        std::fprintf(stderr, "%s\n", (*estimate)->text.c_str());
    for (const std::string &note : run::startNotes(*workspace, *settings))
        std::fprintf(stderr, "%s\n", note.c_str());
    return PreparedRun{std::move(*workspace), std::move(*settings), std::move(*estimate)};
}

} // namespace klineage::cli
