// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/retrieval.h"

#include "core/base/numbertext.h"
#include "core/base/suggest.h"
#include "core/kernel/candidate.h"
#include "core/kernel/candidatetext.h"
#include "core/skills/retrieval/chain.h"
#include "core/skills/retrieval/similarity.h"
#include "core/skills/retrieval/sources.h"
#include "core/talk/cardtext.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct RetrieveOptions {
    RetrievalQuestion question;
    std::string file;
    std::vector<std::string> features;
    skills::RetrievalOptions retrieval;
    bool chain = false;
};

Result<skills::Target> targetOfState(const Workspace &workspace, const std::string &citation)
{
    const std::size_t slash = citation.rfind('/');
    const lineage::Lineage *lineage =
        slash == std::string::npos ? nullptr : workspace.findLineage(citation.substr(0, slash));
    if (!lineage) {
        std::vector<std::string> known;
        for (const lineage::Lineage &other : workspace.lineages)
            known.push_back(other.key());
        return fail(ErrorCode::NotFound, "'" + citation + "' names no state of a lineage, as in "
                                             + (known.empty() ? "sgemm/pocl" : known.front()) + "/K02.");
    }
    std::optional<skills::Target> target =
        skills::targetAt(*lineage, citation.substr(slash + 1), workspace.cards);
    if (!target) {
        std::vector<std::string> known;
        for (const lineage::State &state : lineage->states)
            known.push_back(state.id);
        return fail(ErrorCode::NotFound, "The lineage " + lineage->key() + " has no state '"
                                             + citation.substr(slash + 1) + "'; there is " + quotedList(known)
                                             + '.');
    }
    return std::move(*target);
}

/// What a run would take the code for.
Status addCode(skills::Target &target, const Workspace &workspace, const RetrievalQuestion &question)
{
    std::string code = question.code;
    if (code.empty() && !question.state.empty()) {
        const std::size_t slash = question.state.rfind('/');
        const lineage::Lineage *lineage = workspace.findLineage(question.state.substr(0, slash));
        const lineage::State *state = lineage->findState(question.state.substr(slash + 1));
        Result<std::string> read = kernel::readCandidateText(lineage->directory / state->file);
        if (!read)
            return tl::unexpected(read.error());
        code = std::move(*read);
    }
    if (code.empty())
        return {};
    skills::describeCode(target, code);
    skills::describeFeatures(target, code, workspace.cards);
    return {};
}

json reasonsJson(const std::vector<skills::Reason> &reasons)
{
    json out = json::array();
    for (const skills::Reason &reason : reasons)
        out.push_back({{"dimension", skills::toString(reason.dimension)},
                       {"similarity", reason.similarity},
                       {"rank", reason.rank},
                       {"text", reason.text}});
    return out;
}

std::string reasonsText(const std::vector<skills::Reason> &reasons)
{
    std::string out;
    for (const skills::Reason &reason : reasons)
        out += fmt::format("    {} #{}: {}\n", skills::toString(reason.dimension), reason.rank, reason.text);
    return out;
}

Result<std::vector<skills::Feature>> parseFeatures(const std::vector<std::string> &texts)
{
    std::vector<skills::Feature> features;
    for (const std::string &text : texts) {
        const std::size_t colon = text.rfind(':');
        if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
            return fail(ErrorCode::InvalidInput, "'" + text + "' is no feature; expected LOCUS:NAME.");
        features.push_back({text.substr(0, colon), text.substr(colon + 1)});
    }
    return features;
}

int printChain(const Session &session, const Workspace &workspace, const skills::Target &target,
               const RetrieveOptions &options)
{
    const skills::Chain chain = skills::retrieveChain(retrievalIndex(workspace), workspace.cards, target,
                                                      options.retrieval, mostOfChain);
    if (session.json()) {
        json out = chainJson(chain);
        out["target"] = targetJson(target);
        session.print(out);
        return exitOk;
    }
    std::printf("%s", chainText(chain, workspace).c_str());
    return exitOk;
}

int retrieve(const Session &session, const RetrieveOptions &options)
{
    const Result<Workspace> workspace = session.openWorkspace();
    if (!workspace)
        return session.fail(workspace.error());
    RetrievalQuestion question = options.question;
    Result<std::vector<skills::Feature>> features = parseFeatures(options.features);
    if (!features)
        return session.usage(features.error().message);
    question.features = std::move(*features);
    if (!options.file.empty()) {
        Result<std::string> code = kernel::readCandidateText(options.file);
        if (!code)
            return session.fail(code.error());
        question.code = std::move(*code);
    }
    const Result<skills::Target> target = targetOf(*workspace, question);
    if (!target)
        return session.usage(target.error().message);
    if (options.chain)
        return printChain(session, *workspace, *target, options);
    const skills::Retrieval found = retrievalIndex(*workspace).find(*target, options.retrieval);
    if (session.json()) {
        json out = retrievalJson(found);
        out["target"] = targetJson(*target);
        session.print(out);
        return exitOk;
    }
    std::printf("%s", retrievalText(found).c_str());
    return exitOk;
}

} // namespace

skills::RetrievalIndex retrievalIndex(const Workspace &workspace)
{
    return skills::RetrievalIndex(workspace.cards, skills::pathsOf(workspace.lineages),
                                  skills::tagsOf(workspace.workloads));
}

Result<skills::Target> targetOf(const Workspace &workspace, const RetrievalQuestion &question)
{
    skills::Target target;
    if (!question.state.empty()) {
        Result<skills::Target> state = targetOfState(workspace, question.state);
        if (!state)
            return state;
        target = std::move(*state);
    }
    if (!question.workload.empty())
        target.workload = question.workload;
    if (!question.platform.empty())
        target.platform = question.platform;
    if (!question.language.empty())
        target.language = question.language;
    else if (const auto candidate = kernel::parseCandidate(question.code, "candidate"))
        target.language = kernel::toString(candidate->surface);
    else if (question.state.empty() || !question.platform.empty())
        target.language = std::string(skills::languageOfPlatform(target.platform));
    if (const workload::Workload *workload = workspace.findWorkload(target.workload))
        skills::describe(target, *workload);
    if (Status added = addCode(target, workspace, question); !added)
        return tl::unexpected(added.error());
    target.priorActions.insert(target.priorActions.end(), question.priorActions.begin(),
                               question.priorActions.end());
    target.features.insert(target.features.end(), question.features.begin(), question.features.end());
    if (target.workload.empty() || target.platform.empty())
        return fail(ErrorCode::InvalidInput,
                    "A target needs a workload and a platform, or a state of a lineage that says both.");
    if (target.language.empty())
        return fail(ErrorCode::InvalidInput, "The platform '" + target.platform
                                                 + "' does not say the language: name "
                                                 + quotedList(kernel::surfaceNames()) + ".");
    return target;
}

json targetJson(const skills::Target &target)
{
    json features = json::array();
    for (const skills::Feature &feature : target.features)
        features.push_back({{"locus", feature.locus}, {"name", feature.name}});
    return {{"workload", target.workload},
            {"language", target.language},
            {"platform", target.platform},
            {"prior_actions", target.priorActions},
            {"features", features}};
}

json retrievalJson(const skills::Retrieval &retrieval)
{
    json out{{"taken", json::array()}, {"blocked", json::array()}};
    for (const skills::Retrieved &one : retrieval.taken)
        out["taken"].push_back(
            {{"card", one.card}, {"score", one.score}, {"reasons", reasonsJson(one.reasons)}});
    for (const skills::Blocked &one : retrieval.blocked)
        out["blocked"].push_back(
            {{"card", one.card}, {"rules", one.rules}, {"reasons", reasonsJson(one.reasons)}});
    return out;
}

json chainJson(const skills::Chain &chain)
{
    json out{{"taken", json::array()}, {"blocked", json::array()}};
    for (const skills::Link &link : chain.taken)
        out["taken"].push_back({{"card", link.retrieved.card},
                                {"round", link.round},
                                {"after", link.after},
                                {"reasons", reasonsJson(link.retrieved.reasons)}});
    for (const skills::Blocked &one : chain.blocked)
        out["blocked"].push_back({{"card", one.card}, {"rules", one.rules}});
    return out;
}

std::string chainText(const skills::Chain &chain, const Workspace &workspace)
{
    std::string out =
        chain.taken.empty() ? "No card was taken.\n" : "In the order in which they can be applied:\n";
    for (const skills::Link &link : chain.taken)
        out += policy::indexLine(*workspace.findCard(link.retrieved.card));
    if (!chain.blocked.empty())
        out += "Blocked:\n";
    for (const skills::Blocked &one : chain.blocked) {
        out += "- " + one.card + ":";
        for (std::size_t i = 0; i < one.rules.size(); ++i)
            out += (i == 0 ? " " : "; ") + one.rules[i];
        out += '\n';
    }
    return out;
}

std::string retrievalText(const skills::Retrieval &retrieval)
{
    std::string out = retrieval.taken.empty() ? "No card was taken.\n" : "Taken, best first:\n";
    for (const skills::Retrieved &one : retrieval.taken)
        out += "  " + one.card + " (" + fixedText(one.score, 2) + ")\n" + reasonsText(one.reasons);
    if (!retrieval.blocked.empty())
        out += "Blocked, nearest first:\n";
    for (const skills::Blocked &one : retrieval.blocked) {
        out += "  " + one.card + '\n';
        for (const std::string &rule : one.rules)
            out += "    blocked: " + rule + '\n';
        out += reasonsText(one.reasons);
    }
    return out;
}

void addRetrieveCommand(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<RetrieveOptions>();
    CLI::App *verb = session.addVerb(group, "retrieve",
                                     "Cards for a target: why each was taken, and what blocked near misses",
                                     [&session, options] { return retrieve(session, *options); });
    RetrievalQuestion &question = options->question;
    verb->add_option("--workload", question.workload, "Name of the workload");
    verb->add_option("--platform", question.platform, "As in sm90 or pocl");
    verb->add_option("--language", question.language, "cuda or opencl (default: that of the platform)")
        ->check(CLI::IsMember(kernel::surfaceNames()));
    verb->add_option(
        "--state", question.state,
        "Start from a recorded state, as in sgemm/pocl/K02: its workload, platform, actions and features");
    verb->add_option(
            "--file", options->file,
            "Kernel or candidate file whose code shows what it has already, in place of the state's code")
        ->check(CLI::ExistingFile);
    verb->add_option("--prior", question.priorActions,
                     "Categories of actions that were applied already (comma-separated)")
        ->delimiter(',');
    verb->add_option("--feature", options->features,
                     "LOCUS:NAME that the code provides already (repeatable)");
    verb->add_option("--per-dimension", options->retrieval.perDimension, "Cards that each dimension takes")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    verb->add_option("--blocked", options->retrieval.mostBlocked, "Near misses that are listed, at most")
        ->check(CLI::Range(0, 1000))
        ->capture_default_str();
    verb->add_flag("--chain", options->chain,
                   "Also what the target is ready for once those cards are applied, until nothing is added");
    verb->add_flag("--hypotheses", options->retrieval.hypotheses,
                   "Also cards that no roundtrip has admitted, by their claimed scope");
}

} // namespace klineage::cli
