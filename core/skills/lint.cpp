// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/card.h"

#include "core/base/suggest.h"
#include "core/kernel/dtype.h"
#include "core/skills/vocabulary.h"

#include <algorithm>
#include <set>

namespace klineage::skills {

namespace {

using Severity = LintFinding::Severity;

/// The rules, one method a group. What makes a card useless or contradictory is an error; what makes it weak is a warning.
class Linter
{
public:
    Linter(const Card &card, std::string_view carrier, std::string_view buildingBlock)
        : m_card(card)
        , m_carrier(carrier)
        , m_buildingBlock(buildingBlock)
    {}

    std::vector<LintFinding> run()
    {
        checkHead();
        checkClaim("intent", m_card.intent);
        checkClaim("anchor", m_card.anchor);
        checkClaims("precondition", m_card.preconditions, Severity::Error,
                    "it does not say when the step is sound");
        checkClaims("effect", m_card.effects, Severity::Error, "it does not say what the step brings");
        checkClaims("risk", m_card.risks, Severity::Warning,
                    "it does not say what breaks when a precondition does not hold");
        checkScope();
        checkFeatures();
        checkEvidence();
        checkCarrier();
        if (m_card.format >= 2) {
            checkWords();
            checkProbes();
            checkFigures();
            checkBuildingBlock();
        }
        return std::move(m_findings);
    }

private:
    /// What the forms that cards are imported from do not have makes an imported card weak, not wrong.
    void add(Severity severity, std::string field, std::string message)
    {
        static const std::set<std::string> mayBeMissing{"category", "precondition", "effect",
                                                        "evidence", "carrier",      "scope.languages"};
        if (m_card.imported && mayBeMissing.count(field) > 0)
            severity = Severity::Warning;
        m_findings.push_back({severity, std::move(field), std::move(message)});
    }

    void checkHead()
    {
        if (!isCardName(m_card.name))
            add(Severity::Error, "name", "'" + m_card.name + "' is no card name: use " + cardNameRule + '.');
        if (m_card.category.empty())
            add(Severity::Error, "category", "The action category is missing.");
        if (m_card.locus.empty())
            add(Severity::Warning, "locus", "The locus is missing: say where in the code the step acts.");
    }

    void checkClaim(const std::string &field, const Claim &claim)
    {
        if (claim.text.find_first_not_of(" \t\n") == std::string::npos) {
            add(Severity::Error, field, "The text is empty.");
            return;
        }
        if (claim.evidence.empty())
            add(Severity::Warning, field,
                "It cites no evidence: name a transition, a rejected attempt or a trial.");
        for (const Citation &citation : claim.evidence) {
            checkCitation(field, citation);
            const bool isTrial = citation.starts_with("trial:");
            if (!isTrial
                && std::find(m_card.evidence.begin(), m_card.evidence.end(), citation)
                       == m_card.evidence.end())
                add(Severity::Warning, field,
                    "It cites '" + citation + "', which the card's own evidence does not list.");
        }
    }

    void checkClaims(const std::string &field, const std::vector<Claim> &claims, Severity whenEmpty,
                     const char *consequence)
    {
        if (claims.empty())
            add(whenEmpty, field, "The card has none: " + std::string(consequence) + '.');
        for (std::size_t i = 0; i < claims.size(); ++i) {
            const std::string name = field + '[' + std::to_string(i) + ']';
            checkClaim(name, claims[i]);
            const bool repeated =
                std::any_of(claims.begin(), claims.begin() + static_cast<std::ptrdiff_t>(i),
                            [&](const Claim &earlier) { return earlier.text == claims[i].text; });
            if (repeated)
                add(Severity::Warning, name, "It repeats an earlier one word for word.");
        }
    }

    void checkCitation(const std::string &field, const Citation &citation)
    {
        if (!isCitation(citation))
            add(Severity::Error, field,
                "'" + citation
                    + "' is no citation: write workload/platform/K03, workload/platform/R03a or trial:<16 hex digits>.");
    }

    void checkScope()
    {
        const auto warnWhenEmpty = [&](const char *field, const std::vector<std::string> &values) {
            if (values.empty())
                add(Severity::Warning, field, "It is empty: the card will match everything or nothing.");
        };
        warnWhenEmpty("scope.cases", m_card.scope.cases);
        warnWhenEmpty("scope.languages", m_card.scope.languages);
        warnWhenEmpty("scope.platforms", m_card.scope.platforms);
        for (const std::string &language : m_card.scope.languages) {
            const std::vector<std::string> known = kernel::languageNames();
            if (std::find(known.begin(), known.end(), language) == known.end())
                add(Severity::Error, "scope.languages",
                    "'" + language + "' is no language: use " + quotedList(known) + '.');
        }
    }

    void checkFeatures()
    {
        const auto checkNames = [&](const char *field, const std::vector<Feature> &features) {
            for (const Feature &feature : features) {
                if (feature.locus.empty() || feature.name.empty())
                    add(Severity::Error, field, "A feature needs both a locus and a name.");
            }
        };
        checkNames("provides", m_card.provides);
        checkNames("requires", m_card.requirements);
        checkNames("conflicts", m_card.conflicts);
        for (const Feature &feature : m_card.conflicts) {
            if (std::find(m_card.requirements.begin(), m_card.requirements.end(), feature)
                != m_card.requirements.end())
                add(Severity::Error, "conflicts",
                    "'" + feature.name + "' at '" + feature.locus
                        + "' is required and in conflict: the card can never apply.");
        }
        for (const Feature &feature : m_card.requirements) {
            if (std::find(m_card.provides.begin(), m_card.provides.end(), feature) != m_card.provides.end())
                add(Severity::Warning, "provides",
                    "'" + feature.name + "' at '" + feature.locus
                        + "' is required already, so it is not provided.");
        }
    }

    void checkEvidence()
    {
        if (m_card.evidence.empty())
            add(Severity::Error, "evidence", "The card names no transition that it was lifted from.");
        for (const Citation &citation : m_card.evidence)
            checkCitation("evidence", citation);
    }

    void checkCarrier()
    {
        if (m_card.carrierFile.empty()) {
            add(Severity::Error, "carrier", "The card has no carrier: give the code-bearing hint.");
            return;
        }
        if (m_carrier.find_first_not_of(" \t\r\n") == std::string_view::npos)
            add(Severity::Error, "carrier", "'" + m_card.carrierFile + "' is missing or empty.");
        if (m_carrier.size() > maxCarrierBytes)
            add(Severity::Error, "carrier", "'" + m_card.carrierFile + "' is larger than 256 KiB.");
        const std::vector<std::string> &languages = m_card.scope.languages;
        const std::vector<kernel::Language> known = kernel::allLanguages();
        const bool fits = std::any_of(known.begin(), known.end(), [&](const kernel::Language &language) {
            return m_card.carrierFile == carrierName(language)
                   && std::find(languages.begin(), languages.end(), language.word) != languages.end();
        });
        if (!languages.empty() && !fits)
            add(Severity::Warning, "carrier",
                "'" + m_card.carrierFile + "' is in none of the scope's languages.");
    }

    /// Words that others may share (core/skills/vocabulary.toml).
    void checkWords()
    {
        const Vocabulary &words = Vocabulary::instance();
        const auto check = [&](const std::string &field, Vocabulary::Kind kind, const std::string &word) {
            const std::string name = words.canonical(kind, word);
            if (!words.isKnown(kind, word))
                add(Severity::Warning, field,
                    "'" + word + "' is no word of the vocabulary" + didYouMean(word, words.names(kind))
                        + '.');
            else if (name != word)
                add(Severity::Warning, field, "'" + word + "' is another word for '" + name + "': use that.");
        };
        check("category", Vocabulary::Kind::Category, m_card.category);
        for (const std::string &feature : m_card.capability.features)
            check("capability.features", Vocabulary::Kind::Capability, feature);
        for (const std::string &family : m_card.capability.families)
            check("capability.families", Vocabulary::Kind::Family, family);
        for (const std::string &dtype : m_card.capability.dtypes) {
            if (!kernel::dtypeFromString(dtype))
                add(Severity::Error, "capability.dtypes", "'" + dtype + "' is no type of elements.");
        }
    }

    void checkProbes()
    {
        for (std::size_t i = 0; i < m_card.probes.size(); ++i) {
            const bool known = std::any_of(m_card.risks.begin(), m_card.risks.end(), [&](const Claim &risk) {
                return !risk.id.empty() && risk.id == m_card.probes[i].risk;
            });
            if (!known)
                add(Severity::Error, "probe[" + std::to_string(i) + ']',
                    "It names the risk '" + m_card.probes[i].risk + "', which the card has not.");
        }
    }

    /// A factor in prose that no typed effect has beside it claims what nobody can judge.
    void checkFigures()
    {
        for (std::size_t i = 0; i < m_card.effects.size(); ++i) {
            if (!m_card.effects[i].measured && m_card.effects[i].text.find("×") != std::string::npos)
                add(Severity::Warning, "effect[" + std::to_string(i) + ']',
                    "It has a factor in its text and none as a figure: name trial, against, factor, low and high.");
        }
    }

    void checkBuildingBlock()
    {
        if (m_card.buildingBlockFile.empty())
            return;
        if (m_buildingBlock.find_first_not_of(" \t\r\n") == std::string_view::npos)
            add(Severity::Error, "building_block", "'" + m_card.buildingBlockFile + "' is missing or empty.");
        for (std::string_view rest = m_buildingBlock; !rest.empty();) {
            const std::string_view line = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(std::min(line.size() + 1, rest.size()));
            if (line.substr(0, line.find("//")).find("…") != std::string_view::npos)
                add(Severity::Error, "building_block",
                    "'" + m_card.buildingBlockFile
                        + "' leaves something out ('…'); it has to compile alone.");
        }
    }

    const Card &m_card;
    std::string_view m_carrier;
    std::string_view m_buildingBlock;
    std::vector<LintFinding> m_findings;
};

} // namespace

std::vector<LintFinding> lintCard(const Card &card, std::string_view carrier, std::string_view buildingBlock)
{
    return Linter(card, carrier, buildingBlock).run();
}

} // namespace klineage::skills
