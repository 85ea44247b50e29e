// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/cardreply.h"

#include "core/base/numbertext.h"
#include "core/files/tomlreader.h"
#include "core/run/admit/heldout.h"
#include "core/skills/cardformat.h"
#include "core/skills/cardtables.h"
#include "core/skills/vocabulary.h"

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
        , m_buildingBlock(lifted.buildingBlock)
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
        checkAll("trigger", m_card.triggers);
        for (const Claim &effect : m_card.effects)
            checkFigures(effect);
        for (const skills::Parameter &parameter : m_card.parameters)
            checkTried(parameter);
        if (!isWhole)
            return std::move(m_findings);
        for (const skills::LintFinding &finding : skills::lintCard(m_card, m_carrier, m_buildingBlock)) {
            const bool isWord = finding.field.starts_with("capability"); // retrieval would never find it
            if (isWord || finding.severity == skills::LintFinding::Severity::Error)
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

    /// A figure is one of the value that the trial's candidate had.
    void checkTried(const skills::Parameter &parameter)
    {
        for (const skills::TriedValue &tried : parameter.tried) {
            const auto numbers = m_group.numbers.find(tried.measured.trial);
            if (numbers == m_group.numbers.end())
                continue;
            const auto named = numbers->second.find(parameter.name);
            if (named == numbers->second.end() || named->second.count(tried.value) == 0)
                m_findings.push_back(
                    "parameter " + parameter.name + ": trial " + tried.measured.trial + " says nothing of "
                    + shortestText(tried.value) + ", since its kernel has no " + parameter.name
                    + " of that value. Leave the tried value out, or take the kernel's name for it.");
        }
    }

    const skills::Card &m_card;
    const std::string &m_carrier;
    const std::string &m_buildingBlock;
    const std::string &m_sameAs;
    const LiftGroup &m_group;
    std::vector<std::string> m_findings;
};

/// The claims of a proposal in the format of the card; figures are those of the trial that it names.
class Proposed
{
public:
    Proposed(const TomlTable &root, const LiftGroup &group, int format)
        : m_root(root)
        , m_group(group)
        , m_format(format)
    {}

    std::vector<Claim> claims(const char *key, skills::ClaimKind kind) const
    {
        return m_format >= 2 ? skills::readClaims2(m_root, key, kind, figures()) : readClaims(m_root, key);
    }

    skills::ReadFigures figures() const
    {
        return [&group = m_group](const TomlTable &table) {
            const std::string trial = table.string("trial");
            const std::string against = table.string("against", "parent");
            const auto found = group.measured.find(trial);
            if (found != group.measured.end()) {
                for (const skills::Measured &measured : found->second) {
                    if (measured.against == against)
                        return measured;
                }
            }
            table.fail("trial", "'" + trial + "' is no trial that you were shown with a comparison against '"
                                    + against + "'.");
            return skills::Measured();
        };
    }

private:
    const TomlTable &m_root;
    const LiftGroup &m_group;
    int m_format;
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
                                   const std::vector<KnownCard> &library, int format)
{
    const Result<files::TomlDocument> document = files::TomlDocument::parse(toml, "the card");
    if (!document)
        return tl::unexpected(document.error());
    const TomlTable root = document->root();
    LiftedCard lifted;
    const Proposed proposed(root, group, format);
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
        lifted.card.format = format;
        lifted.card.effects = proposed.claims("effect", skills::ClaimKind::Effect);
        lifted.card.risks = proposed.claims("risk", skills::ClaimKind::Risk);
        if (format >= 2)
            skills::readProposal2(root, lifted.card, proposed.figures());
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
        card.format = format;
        card.preconditions = proposed.claims("precondition", skills::ClaimKind::Condition);
        card.effects = proposed.claims("effect", skills::ClaimKind::Effect);
        card.risks = proposed.claims("risk", skills::ClaimKind::Risk);
        card.provides = readFeatures(root, "provides");
        card.requirements = readFeatures(root, "requires");
        card.conflicts = readFeatures(root, "conflicts");
        card.category = group.category;
        card.scope = group.scope;
        const kernel::Surface surface = kernel::surfaceFromString(group.language).value_or(kernel::Surface());
        card.carrierFile = skills::carrierName(surface.language());
        if (format >= 2) {
            const skills::Vocabulary &words = skills::Vocabulary::instance();
            card.category = words.canonical(skills::Vocabulary::Kind::Category, group.category);
            skills::readProposal2(root, card, proposed.figures());
            lifted.buildingBlock = root.string("building_block", "");
            if (lifted.buildingBlock.find_first_not_of(" \t\r\n") != std::string::npos)
                card.buildingBlockFile = skills::buildingBlockName(surface.language());
        }
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
