// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/admit/heldout.h"

#include "core/kernel/candidatetext.h"
#include "core/talk/reply.h"

#include <algorithm>

namespace klineage::run {

namespace {

constexpr std::string_view trialPrefix = "trial:";

/// Lineages that a citation may speak of. One that is not there any more is known by its name alone.
struct Source {
    std::string workload;
    std::string platform; ///< or the folder, of a lineage that is not there
    std::string key;
    const lineage::Lineage *lineage = nullptr;
};

std::vector<Source> sourcesOf(const Workspace &workspace, const skills::Citation &citation)
{
    std::vector<Source> sources;
    if (citation.starts_with(trialPrefix)) {
        for (const lineage::Lineage &lineage : workspace.lineages) {
            if (lineage.findTrial(citation.substr(trialPrefix.size())))
                sources.push_back({lineage.workload, lineage.platform, lineage.key(), &lineage});
        }
        return sources;
    }
    const std::string key = citation.substr(0, citation.rfind('/'));
    const std::size_t slash = key.find('/');
    const lineage::Lineage *lineage = workspace.findLineage(key);
    const std::string folder = slash == std::string::npos ? std::string() : key.substr(slash + 1);
    sources.push_back({key.substr(0, slash), lineage ? lineage->platform : folder, key, lineage});
    return sources;
}

bool holdsCode(const lineage::Lineage &lineage, const std::string &code)
{
    const auto same = [&](const std::string &file) {
        const Result<std::string> text = kernel::readCandidateText(lineage.directory / file);
        return text && policy::normalizedCode(*text) == code;
    };
    return std::any_of(lineage.states.begin(), lineage.states.end(),
                       [&](const lineage::State &state) { return same(state.file); })
           || std::any_of(lineage.attempts.begin(), lineage.attempts.end(),
                          [&](const lineage::Attempt &attempt) { return same(attempt.file); });
}

} // namespace

HeldOut isHeldOut(const Workspace &workspace, const skills::Card &card, const Subject &target,
                  const std::string &workload, const std::string &platform)
{
    const std::string code = policy::normalizedCode(target.text);
    for (const skills::Citation &citation : citationsOf(card)) {
        const std::vector<Source> sources = sourcesOf(workspace, citation);
        if (sources.empty())
            return {
                false,
                "The card cites " + citation
                    + ", which is in no lineage of the workspace, so that nobody can tell what it came from."};
        for (const Source &source : sources) {
            if (source.key == target.lineage)
                return {false, "The card cites " + citation + ", of the target's own lineage."};
            if (source.workload == workload && source.platform == platform)
                return {false, "The card cites " + citation + ", of the target's workload on its platform."};
            if (source.lineage && holdsCode(*source.lineage, code))
                return {false, "The target's code is a state of " + source.key + ", which the card cites."};
        }
    }
    return {true, "The card cites nothing of " + workload + " on " + platform + '.'};
}

std::vector<skills::Citation> citationsOf(const skills::Card &card)
{
    std::vector<skills::Citation> citations;
    const auto add = [&](const std::vector<skills::Citation> &more) {
        for (const skills::Citation &citation : more) {
            if (std::find(citations.begin(), citations.end(), citation) == citations.end())
                citations.push_back(citation);
        }
    };
    add(card.evidence);
    add(card.intent.evidence);
    add(card.anchor.evidence);
    for (const auto *claims : {&card.preconditions, &card.effects, &card.risks}) {
        for (const skills::Claim &claim : *claims)
            add(claim.evidence);
    }
    return citations;
}

} // namespace klineage::run
