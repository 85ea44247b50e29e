// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/cardfacets.h"

#include "core/files/utctime.h"
#include "core/skills/retrieval/sources.h"
#include "core/skills/vocabulary.h"
#include "core/workspace/citations.h"

#include <algorithm>

namespace klineage {

namespace {

std::string lowered(std::string_view text, char forBlank)
{
    std::string word;
    for (const char c : text) {
        const bool upper = c >= 'A' && c <= 'Z';
        word += upper ? static_cast<char>(c - 'A' + 'a') : c == ' ' || c == '\t' || c == ',' ? forBlank : c;
    }
    return word;
}

void addOnce(std::vector<std::string> &words, std::string_view text)
{
    std::string word = lowered(text, '-');
    if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end())
        words.push_back(std::move(word));
}

const char *verdictWord(const skills::Review *review)
{
    if (review && review->verdict == skills::ReviewVerdict::Approve)
        return "approved";
    if (review && review->verdict == skills::ReviewVerdict::Reject)
        return "rejected";
    return review && review->verdict == skills::ReviewVerdict::NeedsEvidence ? "evidence" : "none";
}

const char *lintWord(const Workspace &workspace, const skills::CardRecord &record)
{
    auto findings = skills::lintCard(record.card, record.carrier, record.buildingBlock);
    const auto dead = lintCitations(workspace, record.card);
    findings.insert(findings.end(), dead.begin(), dead.end());
    const bool wrong = std::any_of(findings.begin(), findings.end(), [](const skills::LintFinding &finding) {
        return finding.severity == skills::LintFinding::Severity::Error;
    });
    return wrong ? "error" : findings.empty() ? "clean" : "warning";
}

/// "sm90" of "layernorm/sm90/K03".
std::string_view platformOf(std::string_view target)
{
    const std::size_t first = target.find('/');
    if (first == std::string_view::npos)
        return {};
    return target.substr(first + 1, target.find('/', first + 1) - first - 1);
}

void addFamilies(std::vector<std::string> &words, const Workspace &workspace, const skills::Card &card)
{
    for (const std::string &family : card.capability.families)
        addOnce(words, family);
    if (!words.empty())
        return;
    for (const std::string &name : card.scope.cases) {
        if (const workload::Workload *workload = workspace.findWorkload(name)) {
            for (const std::string &family :
                 skills::Vocabulary::instance().familiesOf(skills::tagsOf(*workload).tags))
                addOnce(words, family);
        }
    }
}

/// One part of a query: what it is under, and its words; nothing for plain text.
struct Part {
    std::optional<Facet> facet;
    std::vector<std::string> words;
    bool looksLikeOne = false; ///< "key:word", of a key that is none
};

Part partOf(std::string_view token)
{
    Part part;
    const std::size_t colon = token.find(':');
    if (colon == std::string_view::npos || colon == 0)
        return part;
    part.facet = facetFromString(lowered(token.substr(0, colon), '-'));
    part.looksLikeOne = !part.facet && colon + 1 < token.size();
    for (std::string_view rest = token.substr(colon + 1); !rest.empty();) {
        const std::string_view word = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
        if (!word.empty())
            part.words.push_back(lowered(word, '-'));
    }
    return part;
}

std::vector<std::string_view> tokensOf(std::string_view text)
{
    constexpr const char *blanks = " \t\n";
    std::vector<std::string_view> tokens;
    for (std::size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
        tokens.push_back(text.substr(at, end - at));
        at = text.find_first_not_of(blanks, end);
    }
    return tokens;
}

void append(std::string &text, std::string_view token)
{
    if (!text.empty())
        text += ' ';
    text += token;
}

} // namespace

const char *toString(Facet facet)
{
    constexpr std::array<const char *, allFacets.size()> words{
        "life", "lint", "verdict", "viewed", "age", "platform", "needs", "family", "by"};
    return words[static_cast<std::size_t>(facet)];
}

std::optional<Facet> facetFromString(std::string_view word)
{
    const auto found = std::find_if(allFacets.begin(), allFacets.end(),
                                    [&](Facet facet) { return word == toString(facet); });
    return found == allFacets.end() ? std::nullopt : std::optional(*found);
}

CardFacets facetsOf(const Workspace &workspace, const skills::CardRecord &record)
{
    CardFacets facets;
    const skills::Review *standing = record.standingReview();
    facets.of(Facet::Life) = {skills::toString(record.life())};
    if (record.card.imported)
        facets.of(Facet::Life).emplace_back("imported");
    if (standing && standing->verdict == skills::ReviewVerdict::Reject)
        facets.of(Facet::Life).emplace_back("rejected");
    facets.of(Facet::Lint) = {lintWord(workspace, record)};
    facets.of(Facet::Verdict) = {verdictWord(standing)};
    for (const std::string &platform : record.card.scope.platforms)
        addOnce(facets.of(Facet::Platform), platform);
    for (const skills::Verification &run : record.verifications) {
        if (run.expectedEffectObserved)
            addOnce(facets.of(Facet::Platform), platformOf(run.target));
        facets.newest = std::max(facets.newest, run.time);
    }
    for (const std::string &feature : record.card.capability.features)
        addOnce(facets.of(Facet::Needs), feature);
    addFamilies(facets.of(Facet::Family), workspace, record.card);
    for (const skills::Review &review : record.reviews) {
        addOnce(facets.of(Facet::By), review.author);
        facets.newest = std::max(facets.newest, review.time);
    }
    return facets;
}

std::string ageWord(const std::string &time, std::chrono::system_clock::time_point now)
{
    using std::chrono::hours;
    if (time.empty())
        return "undated";
    for (const auto &[word, days] : {std::pair{"today", 1}, std::pair{"week", 7}, std::pair{"month", 31}}) {
        if (time >= files::formatUtc(now - hours(24 * days)))
            return word;
    }
    return "older";
}

bool CardQuery::hasFacets() const
{
    return std::any_of(wanted.begin(), wanted.end(), [](const auto &words) { return !words.empty(); });
}

bool CardQuery::accepts(const CardFacets &facets, Facet facet) const
{
    const std::vector<std::string> &beginnings = of(facet);
    const std::vector<std::string> &words = facets.of(facet);
    return beginnings.empty() || std::any_of(words.begin(), words.end(), [&](const std::string &word) {
               return std::any_of(beginnings.begin(), beginnings.end(), [&](const std::string &beginning) {
                   return word.starts_with(beginning)
                          || (beginning.size() == word.size() + 1 && beginning.ends_with('s')
                              && beginning.starts_with(word)); // "errors"
               });
           });
}

bool CardQuery::accepts(const CardFacets &facets) const
{
    return std::all_of(allFacets.begin(), allFacets.end(),
                       [&](Facet facet) { return accepts(facets, facet); });
}

CardQuery parseCardQuery(std::string_view text)
{
    CardQuery query;
    for (const std::string_view token : tokensOf(text)) {
        const Part part = partOf(token);
        if (!part.facet) {
            append(query.text, token);
            if (part.looksLikeOne)
                query.unknown.emplace_back(token);
            continue;
        }
        auto &wanted = query.wanted[static_cast<std::size_t>(*part.facet)];
        wanted.insert(wanted.end(), part.words.begin(), part.words.end());
    }
    return query;
}

std::string toggled(std::string_view text, Facet facet, std::string_view word)
{
    std::string result;
    std::vector<std::string> words;
    bool found = false;
    for (const std::string_view token : tokensOf(text)) {
        const Part part = partOf(token);
        if (part.facet != facet) {
            append(result, token);
            continue;
        }
        for (const std::string &held : part.words) {
            if (held == word)
                found = true;
            else
                words.push_back(held);
        }
    }
    if (!found)
        words.emplace_back(word);
    std::string joined;
    for (const std::string &held : words)
        joined += (joined.empty() ? "" : ",") + held;
    if (!joined.empty())
        append(result, toString(facet) + std::string(":") + joined);
    return result;
}

} // namespace klineage
