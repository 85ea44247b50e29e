// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/cards/richjson.h"

#include "core/interop/cards/foreigncard.h"
#include "core/interop/cards/frontmatter.h"

#include <algorithm>
#include <optional>

namespace klineage::interop {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr int maxJsonDepth = 32;
constexpr std::size_t maxClaims = 1000;

/// Nothing when it is no JSON or nested too deep: a text of brackets must not become a stack of calls.
std::optional<json> parsed(std::string_view text)
{
    bool tooDeep = false;
    json value = json::parse(
        text,
        [&](int depth, json::parse_event_t, json &) {
            tooDeep = tooDeep || depth > maxJsonDepth;
            return depth <= maxJsonDepth;
        },
        false);
    if (value.is_discarded() || tooDeep)
        return std::nullopt;
    return value;
}

/// Code as a text, as a list of them, or as an object that has it under one of these keys.
std::string codeIn(const json &card, const char *key)
{
    const auto found = card.find(key);
    if (found == card.end())
        return {};
    for (const char *member : {"code", "text", "snippet", "content"}) {
        if (found->is_object() && found->contains(member))
            return textOf(*found, member);
    }
    return textOf(card, key);
}

/// The words of a claim, which may stand in an object of its own.
std::string claimIn(const json &value)
{
    for (const char *member : {"text", "description", "claim", "statement"}) {
        if (value.is_object() && value.contains(member))
            return textOf(value, member);
    }
    std::string joined;
    for (const std::string &text : textsIn(value))
        joined += (joined.empty() ? "" : "; ") + text;
    return joined;
}

std::vector<skills::Claim> claimsIn(const json &card, const char *key)
{
    std::vector<skills::Claim> claims;
    const auto found = card.find(key);
    if (found == card.end())
        return claims;
    const json list = found->is_array() ? *found : json::array({*found});
    for (const json &value : list) {
        if (std::string text = claimIn(value); !text.empty() && claims.size() < maxClaims)
            claims.push_back({std::move(text), {}});
    }
    return claims;
}

std::vector<skills::Feature> featuresIn(const json &card, const char *key)
{
    std::vector<skills::Feature> features;
    const auto found = card.find(key);
    if (found == card.end() || !found->is_array())
        return features;
    for (const json &value : *found) {
        const skills::Feature feature{textOf(value, "locus"), textOf(value, "name")};
        if (!feature.locus.empty() && !feature.name.empty() && features.size() < maxClaims)
            features.push_back(feature);
    }
    return features;
}

void readEvidence(const json &evidence, ForeignCard &foreign)
{
    skills::Card &card = foreign.card;
    std::size_t unknown = 0;
    for (const json &piece : evidence) {
        if (card.category.empty())
            card.category = textOf(piece, "action_category");
        if (card.locus.empty())
            card.locus = textOf(piece, "locus");
        std::vector<std::string> citations{textOf(piece, "citation")};
        for (const std::string &text :
             textsIn(piece.is_object() ? piece.value("rejected_evidence", json()) : json()))
            citations.push_back(text);
        for (const std::string &citation : citations) {
            const bool known = skills::isCitation(citation);
            unknown += known ? 0 : 1;
            if (known && card.evidence.size() < maxClaims)
                card.evidence.push_back(citation);
        }
    }
    if (unknown > 0)
        foreign.notes.push_back("its evidence (" + std::to_string(unknown)
                                + (unknown == 1 ? " piece" : " pieces")
                                + ") is of another library and is not cited");
}

Result<ForeignCard> readCard(const json &value, const std::string &fallback, const ForeignLibrary &library)
{
    if (!value.is_object())
        return fail(ErrorCode::InvalidInput, "It is no JSON object.");
    ForeignCard foreign;
    skills::Card &card = foreign.card;
    std::string name = textOf(value, "skill_id");
    if (name.empty() && !value.contains("intent"))
        return fail(ErrorCode::InvalidInput, "It has neither skill_id nor intent.");
    if (name.empty())
        name = fallback;
    card.format = 2;
    card.name = cardNameFrom(name);
    const auto claimOf = [&](const char *key) {
        return value.contains(key) ? claimIn(value.at(key)) : std::string();
    };
    card.intent.text = claimOf("intent");
    if (card.intent.text.empty())
        return fail(ErrorCode::InvalidInput, "Its intent is empty.");
    card.anchor.text = claimOf("anchor");
    if (card.anchor.text.empty())
        card.anchor.text = "Not said where it came from.";
    card.preconditions = claimsIn(value, "precondition");
    card.effects = claimsIn(value, "effect");
    card.risks = claimsIn(value, "risk");
    card.scope = scopeFrom(value.value("scope", json::object()));
    card.requirements = featuresIn(value, "requires");
    card.provides = featuresIn(value, "provides");
    card.conflicts = featuresIn(value, "conflicts");
    readEvidence(value.value("evidence", json::array()), foreign);
    if (const json log = value.value("verification_log", json::array()); !log.empty())
        foreign.notes.push_back("its verifications (" + std::to_string(log.size())
                                + ") were made elsewhere and admit nothing here");
    setCarrier(foreign, codeIn(value, "carrier"));
    skills::Imported &imported = card.imported.emplace();
    imported.form = "klineage-json";
    imported.origin = library.origin;
    imported.name = name;
    imported.license = textOf(value, "license");
    if (imported.license.empty())
        imported.license = library.license;
    return foreign;
}

ordered_json textsOf(const std::vector<skills::Claim> &claims)
{
    ordered_json out = ordered_json::array();
    for (const skills::Claim &claim : claims)
        out.push_back(claim.text);
    return out;
}

ordered_json featuresOf(const std::vector<skills::Feature> &features)
{
    ordered_json out = ordered_json::array();
    for (const skills::Feature &feature : features)
        out.push_back({{"locus", feature.locus}, {"name", feature.name}});
    return out;
}

/// A piece for each transition; rejected attempts belong to the first of their lineage, or to the first of all.
ordered_json evidenceOf(const skills::Card &card, const FindTransition &find)
{
    ordered_json out = ordered_json::array();
    std::vector<skills::Citation> rejected;
    for (const skills::Citation &citation : card.evidence) {
        if (skills::isAttempt(citation)) {
            rejected.push_back(citation);
            continue;
        }
        const CitedTransition known = find ? find(citation).value_or(CitedTransition()) : CitedTransition();
        out.push_back({{"action_category", known.category.empty() ? card.category : known.category},
                       {"locus", known.locus.empty() ? card.locus : known.locus},
                       {"before_fingerprint", known.before},
                       {"after_fingerprint", known.after},
                       {"backward_edit", ""},
                       {"forward_edit", ""},
                       {"predecessor_validation", known.validation},
                       {"roundtrip_validation", ""},
                       {"rejected_evidence", ordered_json::array()},
                       {"citation", citation}});
    }
    for (const skills::Citation &attempt : rejected) {
        const std::string lineage = attempt.substr(0, attempt.rfind('/') + 1);
        const auto near = std::find_if(out.begin(), out.end(), [&](const ordered_json &piece) {
            return piece.value("citation", std::string()).starts_with(lineage);
        });
        if (out.empty())
            out.push_back({{"action_category", card.category},
                           {"locus", card.locus},
                           {"rejected_evidence", ordered_json::array()}});
        (near == out.end() ? out.front() : *near)["rejected_evidence"].push_back(attempt);
    }
    return out;
}

} // namespace

Result<std::vector<Result<ForeignCard>>> readCardJson(std::string_view text, const std::string &fileName,
                                                      const ForeignLibrary &library)
{
    const std::optional<json> value = parsed(text);
    if (!value)
        return fail(ErrorCode::InvalidInput, "It is no JSON, or nested deeper than 32.");
    const bool isLineage = value->is_object() && value->contains("skills");
    const json cards = isLineage ? value->at("skills") : value->is_array() ? *value : json::array({*value});
    if (!cards.is_array())
        return fail(ErrorCode::InvalidInput, "Its skills are no list.");
    if (cards.size() > maxForeignCards)
        return fail(ErrorCode::InvalidInput, "It has more than 10000 cards.");
    std::vector<Result<ForeignCard>> out;
    for (const json &card : cards) {
        out.push_back(readCard(card, fileName + '-' + std::to_string(out.size() + 1), library));
        if (isLineage && out.back())
            out.back()->notes.emplace_back("the states and transitions of its lineage are not imported");
    }
    return out;
}

ordered_json richJson(const skills::CardRecord &record, const FindTransition &find)
{
    const skills::Card &card = record.card;
    ordered_json log = ordered_json::array();
    for (const skills::Verification &run : record.verifications)
        log.push_back({{"target", run.target},
                       {"validation", run.status},
                       {"expected_effect_observed", run.expectedEffectObserved},
                       {"held_out", run.heldOut}});
    ordered_json out{{"skill_id", card.name},
                     {"intent", card.intent.text},
                     {"anchor", card.anchor.text},
                     {"carrier", record.carrier},
                     {"precondition", textsOf(card.preconditions)},
                     {"effect", textsOf(card.effects)},
                     {"evidence", evidenceOf(card, find)},
                     {"risk", textsOf(card.risks)},
                     {"scope",
                      {{"cases", card.scope.cases},
                       {"languages", card.scope.languages},
                       {"platforms", card.scope.platforms},
                       {"prior_actions", card.scope.priorActions}}},
                     {"verification_log", std::move(log)},
                     {"requires", featuresOf(card.requirements)},
                     {"provides", featuresOf(card.provides)},
                     {"conflicts", featuresOf(card.conflicts)},
                     {"license", skills::licenseOf(card)}};
    if (card.imported)
        out["origin"] = card.imported->origin;
    return out;
}

} // namespace klineage::interop
