// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/citations.h"

#include <algorithm>

namespace klineage {

namespace {

constexpr std::string_view trialPrefix = "trial:";

/// What a citation rests on: the trial itself, or that of the state or attempt; nullptr when there is none.
const gate::Trial *trialBehind(const Workspace &workspace, const skills::Citation &citation)
{
    if (citation.starts_with(trialPrefix))
        return workspace.findTrial(citation.substr(trialPrefix.size()));
    const std::size_t slash = citation.rfind('/');
    const lineage::Lineage *lineage =
        slash == std::string::npos ? nullptr : workspace.findLineage(citation.substr(0, slash));
    if (!lineage)
        return nullptr;
    const std::string id = citation.substr(slash + 1);
    if (const lineage::State *state = lineage->findState(id))
        return lineage->trialOf(*state);
    const auto attempt = std::find_if(lineage->attempts.begin(), lineage->attempts.end(),
                                      [&](const lineage::Attempt &other) { return other.id == id; });
    return attempt == lineage->attempts.end() ? nullptr : lineage->trialOf(*attempt);
}

} // namespace

bool citationExists(const Workspace &workspace, const skills::Citation &citation)
{
    if (citation.starts_with(trialPrefix))
        return trialBehind(workspace, citation) != nullptr;
    const std::size_t slash = citation.rfind('/');
    if (slash == std::string::npos)
        return false;
    const lineage::Lineage *lineage = workspace.findLineage(citation.substr(0, slash));
    const std::string id = citation.substr(slash + 1);
    return lineage
           && (lineage->transitionTo(id) != nullptr
               || std::any_of(lineage->attempts.begin(), lineage->attempts.end(),
                              [&](const lineage::Attempt &attempt) { return attempt.id == id; }));
}

std::vector<skills::LintFinding> lintCitations(const Workspace &workspace, const skills::Card &card)
{
    std::vector<skills::LintFinding> findings;
    const auto check = [&](const std::string &field, const std::vector<skills::Citation> &citations) {
        for (const skills::Citation &citation : citations) {
            if (!skills::isCitation(citation))
                continue;
            const gate::Trial *trial = trialBehind(workspace, citation);
            if (!citationExists(workspace, citation))
                findings.push_back(
                    {skills::LintFinding::Severity::Error, field,
                     "'" + citation + "' names no transition, attempt or trial of this workspace."});
            else if (trial && !trial->admits())
                findings.push_back({skills::LintFinding::Severity::Error, field,
                                    "'" + citation + "' rests on the trial " + trial->id
                                        + ", whose trust is '" + gate::toString(trial->trust)
                                        + "': it is a hint, no evidence."});
        }
    };
    const auto checkAll = [&](const std::string &field, const std::vector<skills::Claim> &claims) {
        for (std::size_t i = 0; i < claims.size(); ++i)
            check(field + '[' + std::to_string(i) + ']', claims[i].evidence);
    };
    check("intent", card.intent.evidence);
    check("anchor", card.anchor.evidence);
    checkAll("precondition", card.preconditions);
    checkAll("effect", card.effects);
    checkAll("risk", card.risks);
    check("evidence", card.evidence);
    for (std::size_t i = 0; i < card.probes.size(); ++i)
        check("probe[" + std::to_string(i) + ']', {"trial:" + card.probes[i].trial});
    for (skills::LintFinding &finding : findings) {
        if (card.imported) // lifted elsewhere: what it rests on need not be here
            finding.severity = skills::LintFinding::Severity::Warning;
    }
    return findings;
}

} // namespace klineage
