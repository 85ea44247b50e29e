// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/card.h"

#include "core/base/suggest.h"

#include <algorithm>

namespace klineage::skills {

namespace {

using Severity = LintFinding::Severity;

/// The rules, one method a group. What makes a card useless or contradictory is an error; what makes it weak is a warning.
class Linter
{
public:
    Linter(const Card &card, std::string_view carrier)
        : m_card(card)
        , m_carrier(carrier)
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
        return std::move(m_findings);
    }

private:
    void add(Severity severity, std::string field, std::string message)
    {
        m_findings.push_back({severity, std::move(field), std::move(message)});
    }

    void checkHead()
    {
        if (!isCardName(m_card.name))
            add(Severity::Error, "name",
                "'" + m_card.name + "' is no card name: use 1 to 64 of a-z, 0-9 and '-'.");
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

    const Card &m_card;
    std::string_view m_carrier;
    std::vector<LintFinding> m_findings;
};

} // namespace

std::vector<LintFinding> lintCard(const Card &card, std::string_view carrier)
{
    return Linter(card, carrier).run();
}

} // namespace klineage::skills
