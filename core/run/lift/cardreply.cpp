// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/cardreply.h"

#include "core/files/tomlreader.h"
#include "core/run/admit/heldout.h"
#include "core/skills/cardtables.h"

#include <algorithm>

namespace klineage::run {

namespace {

using files::TomlTable;
using skills::readClaim;
using skills::readClaims;
using skills::readFeatures;
using skills::readSingleClaim;
using skills::Citation;
using skills::Claim;

std::string joined(const std::vector<Citation> &citations)
{
    std::string text;
    for (const Citation &citation : citations)
        text += (text.empty() ? "" : ", ") + citation;
    return text;
}

class Checker
{
public:
    Checker(const LiftedCard &lifted, const LiftGroup &group)
        : m_card(lifted.card)
        , m_carrier(lifted.carrier)
        , m_sameAs(lifted.sameAs)
        , m_group(group)
    {}

    std::vector<std::string> run()
    {
        const bool isWhole = m_sameAs.empty();
        if (isWhole) {
            check("intent", m_card.intent);
            check("anchor", m_card.anchor);
        }
        checkAll("precondition", m_card.preconditions);
        checkAll("effect", m_card.effects);
        checkAll("risk", m_card.risks);
        for (const Claim &effect : m_card.effects)
            checkFigures(effect);
        if (!isWhole)
            return std::move(m_findings);
        for (const skills::LintFinding &finding : skills::lintCard(m_card, m_carrier)) {
            if (finding.severity == skills::LintFinding::Severity::Error)
                m_findings.push_back(finding.field + ": " + finding.message);
        }
        return std::move(m_findings);
    }

private:
    void check(const std::string &field, const Claim &claim)
    {
        if (claim.evidence.empty())
            m_findings.push_back(field + ": it cites no evidence.");
        for (const Citation &citation : claim.evidence) {
            if (m_group.figures.count(citation) == 0)
                m_findings.push_back(field + ": it cites '" + citation
                                     + "', which is none of the citations that were given.");
        }
    }

    void checkAll(const std::string &field, const std::vector<Claim> &claims)
    {
        for (std::size_t i = 0; i < claims.size(); ++i)
            check(field + '[' + std::to_string(i) + ']', claims[i]);
    }

    void checkFigures(const Claim &effect)
    {
        for (const Quantity &quantity : quantitiesIn(effect.text)) {
            const bool held =
                std::any_of(effect.evidence.begin(), effect.evidence.end(), [&](const Citation &citation) {
                    const auto figures = m_group.figures.find(citation);
                    return figures != m_group.figures.end() && figures->second.hold(quantity);
                });
            if (!held)
                m_findings.push_back("effect: '" + quantity.text
                                     + "' is no figure of the trials that it cites ("
                                     + joined(effect.evidence) + ").");
        }
    }

    const skills::Card &m_card;
    const std::string &m_carrier;
    const std::string &m_sameAs;
    const LiftGroup &m_group;
    std::vector<std::string> m_findings;
};

/// The group's transitions, and the attempts that the card cites.
std::vector<Citation> evidenceOf(const skills::Card &card, const LiftGroup &group)
{
    std::vector<Citation> evidence = group.evidence;
    for (const Citation &citation : citationsOf(card)) {
        if (std::find(group.rejected.begin(), group.rejected.end(), citation) != group.rejected.end())
            evidence.push_back(citation);
    }
    return evidence;
}

} // namespace

Result<LiftedCard> parseLiftedCard(const std::string &toml, const LiftGroup &group,
                                   const std::vector<KnownCard> &library)
{
    const Result<files::TomlDocument> document = files::TomlDocument::parse(toml, "the card");
    if (!document)
        return tl::unexpected(document.error());
    const TomlTable root = document->root();
    LiftedCard lifted;
    if (root.has("declined")) {
        lifted.declined = root.string("declined");
        if (lifted.declined.find_first_not_of(" \t\r\n") == std::string::npos)
            root.fail("declined", "the reason is empty; expected one sentence.");
    } else if (root.has("same_as")) {
        lifted.sameAs = root.string("same_as");
        const bool isKnown = std::any_of(library.begin(), library.end(), [&](const KnownCard &known) {
            return known.name == lifted.sameAs && known.language == group.language;
        });
        if (!isKnown)
            root.fail("same_as", "the library that you were shown has no card '" + lifted.sameAs + "'.");
        for (const TomlTable &table : root.tables("effect"))
            lifted.card.effects.push_back(readClaim(table));
        for (const TomlTable &table : root.tables("risk"))
            lifted.card.risks.push_back(readClaim(table));
        lifted.card.evidence = evidenceOf(lifted.card, group);
        lifted.card.scope = group.scope;
    } else {
        skills::Card &card = lifted.card;
        card.name = root.string("name");
        card.locus = root.string("locus");
        lifted.carrier = root.string("carrier");
        for (const char *key : {"precondition", "effect", "risk"})
            root.require(key); // a card of one's own may lack them, a proposal has to say what it knows
        card.intent = readSingleClaim(root, "intent");
        card.anchor = readSingleClaim(root, "anchor");
        card.preconditions = readClaims(root, "precondition");
        card.effects = readClaims(root, "effect");
        card.risks = readClaims(root, "risk");
        card.provides = readFeatures(root, "provides");
        card.requirements = readFeatures(root, "requires");
        card.conflicts = readFeatures(root, "conflicts");
        card.category = group.category;
        card.scope = group.scope;
        card.carrierFile = skills::carrierName(
            kernel::surfaceFromString(group.language).value_or(kernel::Surface()).language());
        card.evidence = evidenceOf(card, group);
    }
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return lifted;
}

std::vector<std::string> findingsOf(const LiftedCard &lifted, const LiftGroup &group)
{
    return Checker(lifted, group).run();
}

} // namespace klineage::run
