// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/listtext.h"
#include "core/base/numbertext.h"
#include "core/skills/admission.h"
#include "core/skills/card.h"
#include "core/skills/descriptionwords.h"
#include "core/skills/retrieval.h"

#include <fmt/core.h>
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

std::string description(const Card &card, Life life)
{
    // Said where an agent chooses, and never cut off.
    const std::string standing(life == Life::Hypothesis ? hypothesisWords : std::string_view());
    std::vector<std::string> conditions;
    for (const Claim &claim : card.preconditions)
        conditions.push_back(withoutStop(claim.text));
    std::string text = withoutStop(card.intent.text) + '.';
    if (!conditions.empty())
        text += std::string(useWhenWords) + joined(conditions, "; ") + '.';
    return shortened(text, maxDescriptionBytes - standing.size()) + standing;
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

void appendScopeList(std::string &out, const Scope &scope, const char *none)
{
    const auto line = [&](const char *name, const std::vector<std::string> &values) {
        out += "- " + std::string(name) + ": " + (values.empty() ? std::string(none) : joined(values, ", "))
               + '\n';
    };
    line("Cases", scope.cases);
    line("Languages", scope.languages);
    line("Platforms", scope.platforms);
    line("Prior actions", scope.priorActions);
}

/// What a card says of itself and what roundtrips showed are two things.
void appendScope(std::string &out, const CardRecord &record)
{
    const Scope verified = verifiedScope(record);
    out += "\n## Scope\n\nVerified, by roundtrips:";
    if (verified.cases.empty())
        out += " nowhere yet.\n";
    else {
        out += "\n\n";
        appendScopeList(out, verified, "none");
    }
    out += "\nClaimed, where it was lifted from:\n\n";
    appendScopeList(out, record.card.scope, "none named");
}

std::string factorText(const Measured &measured)
{
    const std::string other = measured.against == "parent" ? "its parent" : measured.against;
    return fixedText(measured.factor, 3) + "× (" + fixedText(measured.low, 3) + "–"
           + fixedText(measured.high, 3) + ") against " + other + " (`trial:" + measured.trial + "`)";
}

void appendConditions(std::string &out, const char *title, const std::vector<Claim> &claims)
{
    if (claims.empty())
        return;
    out += "\n## " + std::string(title) + "\n\n";
    for (const Claim &claim : claims)
        out += "- " + oneLine(claim.text) + (claim.when.empty() ? "" : " When `" + claim.when + "`.")
               + citations(claim.evidence) + '\n';
}

void appendEffects(std::string &out, const std::vector<Claim> &effects)
{
    out += "\n## Effect\n\n";
    for (const Claim &effect : effects)
        out += "- " + oneLine(effect.text)
               + (effect.measured ? " Measured: " + factorText(*effect.measured) + '.' : std::string())
               + citations(effect.evidence) + '\n';
}

void appendRisks(std::string &out, const Card &card)
{
    out += "\n## Risk\n\n";
    for (const Claim &risk : card.risks)
        out += "- " + std::string(toString(standingOf(card, risk))) + ": " + oneLine(risk.text)
               + citations(risk.evidence) + '\n';
    if (card.risks.empty())
        out += "Nothing is recorded.\n";
    for (const Probe &probe : card.probes)
        out += "- probe of `" + probe.risk + "`: " + oneLine(probe.text) + " The gate: " + probe.verdict
               + (probe.refutes ? ", which refutes it" : "") + " (`trial:" + probe.trial + "`)\n";
}

void appendNeeds(std::string &out, const Capability &capability)
{
    const auto line = [&](const char *what, const std::vector<std::string> &values) {
        if (!values.empty())
            out += "- Needs " + std::string(what) + ": " + joined(values, ", ") + '\n';
    };
    line("of the device", capability.features);
    line("an input of type", capability.dtypes);
    line("an operator of the family", capability.families);
    if (!capability.toolchain.empty())
        out += "- Needs to compile: " + oneLine(capability.toolchain) + '\n';
}

void appendParameters(std::string &out, const std::vector<Parameter> &parameters)
{
    if (parameters.empty())
        return;
    out += "\n## Parameters\n\n";
    for (const Parameter &parameter : parameters) {
        std::vector<std::string> values;
        for (const double value : parameter.values)
            values.push_back(shortestText(value));
        out += "- `" + parameter.name + "`: " + oneLine(parameter.text) + " Values " + joined(values, ", ")
               + "; default " + shortestText(parameter.preset) + ".\n";
        for (const TriedValue &tried : parameter.tried)
            out += "  - " + shortestText(tried.value) + ": " + factorText(tried.measured) + '\n';
    }
}

std::string fenceLanguage(const std::string &carrierFile)
{
    return kernel::languageOfFile(carrierFile).value_or(kernel::Surface().language()).fence;
}

void appendCode(std::string &out, const std::string &code, const std::string &file)
{
    // One backtick more than the longest run inside, so that the code can hold fences of its own.
    std::size_t longest = 2;
    for (std::size_t i = 0, run = 0; i < code.size(); ++i) {
        run = code[i] == '`' ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    const std::string fence(longest + 1, '`');
    out += fence + fenceLanguage(file) + '\n' + code;
    out += code.back() == '\n' ? "" : "\n";
    out += fence + '\n';
}

void appendCarrier(std::string &out, const CardRecord &record)
{
    out += "\n## Carrier\n\n";
    if (record.carrier.empty())
        out += "There is none.\n";
    else
        appendCode(out, record.carrier, record.card.carrierFile);
    if (record.buildingBlock.empty())
        return;
    out += "\n## Building block\n\nComplete device functions that compile alone.\n\n";
    appendCode(out, record.buildingBlock, record.card.buildingBlockFile);
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
        out += fmt::format(
            "| {} | {} | `{}` | {} | {} | {} | {} |\n", run.time, run.target, run.trial, run.cardRevision,
            run.status, run.expectedEffectObserved ? "observed" : "not observed", run.heldOut ? "yes" : "no");
}

} // namespace

std::string writeSkillMarkdown(const CardRecord &record)
{
    const Card &card = record.card;
    const Admission admission = admissionOf(record);
    std::string out =
        "---\nname: " + card.name + "\ndescription: " + yamlString(description(card, admission.life));
    out += "\nlicense: " + (card.imported ? yamlString(licenseOf(card)) : licenseOf(card)) + "\nmetadata:\n";
    out += "  skill_id: " + yamlString(card.name) + '\n';
    out += "  life: " + yamlString(toString(admission.life)) + '\n';
    out += "  revision: " + yamlString(std::to_string(card.revision)) + '\n';
    out += "  category: " + yamlString(card.category) + '\n';
    out += "  locus: " + yamlString(card.locus) + "\n---\n\n";
    out += "<!-- Generated from card.toml, carrier and logs; edits here are overwritten. -->\n\n";
    out += "# " + withoutStop(card.intent.text) + "\n\n";
    if (const std::optional<Imported> &from = card.imported)
        out += "Imported from " + oneLine(from->origin) + ", where it is called `" + oneLine(from->name)
               + "` and its licence is " + oneLine(from->license) + ".\n\n";
    out += admission.reason + "\n\nAnchor: " + oneLine(card.anchor.text) + citations(card.anchor.evidence)
           + '\n';

    appendConditions(out, "When it is sound", card.preconditions);
    appendFeatures(out, "Requires", card.requirements);
    appendFeatures(out, "In conflict with", card.conflicts);
    if (card.format >= 2) {
        appendNeeds(out, card.capability);
        appendConditions(out, "When it pays", card.triggers);
        appendEffects(out, card.effects);
    } else {
        appendClaims(out, "Effect", card.effects);
    }
    appendFeatures(out, "Provides", card.provides);
    appendParameters(out, card.parameters);
    appendRisks(out, card);
    appendScope(out, record);
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
