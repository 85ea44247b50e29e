// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/citations.h"

#include <algorithm>

namespace klineage {

bool citationExists(const Workspace &workspace, const skills::Citation &citation)
{
    constexpr std::string_view trialPrefix = "trial:";
    if (citation.starts_with(trialPrefix)) {
        const std::string id = citation.substr(trialPrefix.size());
        return std::any_of(workspace.lineages.begin(), workspace.lineages.end(),
                           [&](const lineage::Lineage &lineage) { return lineage.findTrial(id) != nullptr; });
    }
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
            if (skills::isCitation(citation) && !citationExists(workspace, citation))
                findings.push_back(
                    {skills::LintFinding::Severity::Error, field,
                     "'" + citation + "' names no transition, attempt or trial of this workspace."});
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
    return findings;
}

} // namespace klineage
