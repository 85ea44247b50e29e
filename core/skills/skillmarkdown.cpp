// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/card.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace klineage::skills {

namespace {

constexpr std::size_t maxDescriptionBytes = 1024;

/// A double-quoted JSON string is a double-quoted YAML string.
std::string yamlString(const std::string &text)
{
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string oneLine(std::string text)
{
    std::replace(text.begin(), text.end(), '\n', ' ');
    const std::size_t last = text.find_last_not_of(' ');
    text.erase(last == std::string::npos ? 0 : last + 1);
    return text;
}

std::string withoutStop(std::string text)
{
    text = oneLine(std::move(text));
    while (!text.empty() && text.back() == '.')
        text.pop_back();
    return text;
}

/// Cut at a character, not inside one.
std::string shortened(std::string text, std::size_t maxBytes)
{
    constexpr std::string_view ellipsis = "…";
    if (text.size() <= maxBytes)
        return text;
    std::size_t end = maxBytes - ellipsis.size();
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
        --end;
    return text.substr(0, end) + std::string(ellipsis);
}

std::string joined(const std::vector<std::string> &items, const char *separator)
{
    std::string text;
    for (const std::string &item : items)
        text += (text.empty() ? "" : separator) + item;
    return text;
}

std::string description(const Card &card)
{
    std::vector<std::string> conditions;
    for (const Claim &claim : card.preconditions)
        conditions.push_back(withoutStop(claim.text));
    std::string text = withoutStop(card.intent.text) + '.';
    if (!conditions.empty())
        text += " Use when: " + joined(conditions, "; ") + '.';
    return shortened(text, maxDescriptionBytes);
}

std::string citations(const std::vector<Citation> &evidence)
{
    return evidence.empty() ? std::string(" (no evidence cited)") : " (`" + joined(evidence, "`, `") + "`)";
}

void appendClaims(std::string &out, const char *title, const std::vector<Claim> &claims)
{
    out += "\n## " + std::string(title) + "\n\n";
    for (const Claim &claim : claims)
        out += "- " + oneLine(claim.text) + citations(claim.evidence) + '\n';
    if (claims.empty())
        out += "Nothing is recorded.\n";
}

void appendFeatures(std::string &out, const char *what, const std::vector<Feature> &features)
{
    for (const Feature &feature : features)
        out += "- " + std::string(what) + " `" + feature.name + "` at " + oneLine(feature.locus) + '\n';
}

void appendScope(std::string &out, const Scope &scope, Life life)
{
    const auto line = [&](const char *name, const std::vector<std::string> &values) {
        out += "- " + std::string(name) + ": "
               + (values.empty() ? std::string("none named") : joined(values, ", ")) + '\n';
    };
    out += std::string("\n## Scope\n\n")
           + (life == Life::Hypothesis ? "Claimed, not verified yet:\n\n" : "Verified:\n\n");
    line("Cases", scope.cases);
    line("Languages", scope.languages);
    line("Platforms", scope.platforms);
    line("Prior actions", scope.priorActions);
}

std::string fenceLanguage(const std::string &carrierFile)
{
    return kernel::languageOfFile(carrierFile).value_or(kernel::Surface().language()).fence;
}

void appendCarrier(std::string &out, const CardRecord &record)
{
    out += "\n## Carrier\n\n";
    if (record.carrier.empty()) {
        out += "There is none.\n";
        return;
    }
    // One backtick more than the longest run inside, so that the carrier can hold fences of its own.
    std::size_t longest = 2;
    for (std::size_t i = 0, run = 0; i < record.carrier.size(); ++i) {
        run = record.carrier[i] == '`' ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    const std::string fence(longest + 1, '`');
    out += fence + fenceLanguage(record.card.carrierFile) + '\n' + record.carrier;
    out += record.carrier.back() == '\n' ? "" : "\n";
    out += fence + '\n';
}

void appendVerifications(std::string &out, const CardRecord &record)
{
    out += "\n## Verification\n\n";
    if (record.verifications.empty()) {
        out += "No roundtrip is recorded.\n";
        return;
    }
    out +=
        "| time | target | trial | card revision | status | expected effect | held out |\n|---|---|---|---|---|---|---|\n";
    for (const Verification &run : record.verifications)
        out += "| " + run.time + " | " + run.target + " | `" + run.trial + "` | "
               + std::to_string(run.cardRevision) + " | " + run.status + " | "
               + (run.expectedEffectObserved ? "observed" : "not observed") + " | "
               + (run.heldOut ? "yes" : "no") + " |\n";
}

std::string lifeSentence(Life life)
{
    switch (life) {
    case Life::Admitted:
        return "Admitted: a held-out roundtrip succeeded with the expected effect.";
    case Life::Retired:
        return "Retired: kept for its evidence, not to be applied.";
    case Life::Hypothesis:
        break;
    }
    return "Hypothesis: no held-out roundtrip has succeeded yet.";
}

} // namespace

std::string writeSkillMarkdown(const CardRecord &record)
{
    const Card &card = record.card;
    const Life life = record.life();
    std::string out = "---\nname: " + card.name + "\ndescription: " + yamlString(description(card));
    out += "\nlicense: GPL-3.0-or-later\nmetadata:\n";
    out += "  skill_id: " + yamlString(card.name) + '\n';
    out += "  life: " + yamlString(toString(life)) + '\n';
    out += "  revision: " + yamlString(std::to_string(card.revision)) + '\n';
    out += "  category: " + yamlString(card.category) + '\n';
    out += "  locus: " + yamlString(card.locus) + "\n---\n\n";
    out += "<!-- Generated from card.toml, carrier and logs; edits here are overwritten. -->\n\n";
    out += "# " + withoutStop(card.intent.text) + "\n\n";
    out += lifeSentence(life) + "\n\nAnchor: " + oneLine(card.anchor.text) + citations(card.anchor.evidence)
           + '\n';

    appendClaims(out, "When it is sound", card.preconditions);
    appendFeatures(out, "Requires", card.requirements);
    appendFeatures(out, "In conflict with", card.conflicts);
    appendClaims(out, "Effect", card.effects);
    appendFeatures(out, "Provides", card.provides);
    appendClaims(out, "Risk", card.risks);
    appendScope(out, card.scope, life);
    appendCarrier(out, record);
    out += "\n## Evidence\n\n";
    for (const Citation &citation : card.evidence)
        out += "- `" + citation + "`\n";
    if (card.evidence.empty())
        out += "None is named.\n";
    appendVerifications(out, record);
    return out;
}

} // namespace klineage::skills
