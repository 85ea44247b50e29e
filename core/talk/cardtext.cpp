// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/cardtext.h"

#include "core/base/numbertext.h"
#include "core/kernel/surfaces/surface.h"
#include "core/skills/retrieval.h"
#include "core/talk/prompt.h"

#include <fmt/core.h>

#include <set>
#include <string_view>

namespace klineage::policy {

namespace {

constexpr std::size_t mostIntentBytes = 31; // 84 cards in 6 KB
const std::set<std::string_view> everyGpuHas = {"gpu", "warps", "shared_memory"};

std::string joined(const std::vector<std::string> &items)
{
    std::string text;
    for (const std::string &item : items)
        text += (text.empty() ? "" : ", ") + item;
    return text.empty() ? "none" : text;
}

std::string measuredText(const skills::Measured &measured)
{
    return fixedText(measured.factor, 3) + "× (" + fixedText(measured.low, 3) + "–"
           + fixedText(measured.high, 3) + ") against "
           + (measured.against == "parent" ? std::string("its parent") : measured.against);
}

std::string claimText(const skills::Claim &claim)
{
    return claim.text + (claim.measured ? " Measured: " + measuredText(*claim.measured) + '.' : std::string())
           + (claim.when.empty() ? "" : " When " + claim.when + '.')
           + (claim.evidence.empty() ? "" : " [" + joined(claim.evidence) + ']');
}

std::string scopeText(const skills::Scope &scope)
{
    return "workloads " + joined(scope.cases) + "; languages " + joined(scope.languages) + "; platforms "
           + joined(scope.platforms) + "; after " + joined(scope.priorActions);
}

std::string needsText(const skills::Card &card)
{
    const skills::Capability &needs = card.capability;
    std::string text;
    const auto add = [&](const char *what, const std::vector<std::string> &values) {
        if (!values.empty())
            text += std::string(text.empty() ? "Needs: " : "; ") + what + joined(values);
    };
    add("", needs.features);
    add("an input of type ", needs.dtypes);
    add("an operator of the family ", needs.families);
    return text.empty() ? text : text + '\n';
}

std::string numbersText(const std::vector<double> &values)
{
    std::vector<std::string> words;
    for (const double value : values)
        words.push_back(shortestText(value));
    return joined(words);
}

void addParameters(std::string &text, const std::vector<skills::Parameter> &parameters)
{
    if (!parameters.empty())
        text += "Parameters:\n";
    for (const skills::Parameter &parameter : parameters) {
        text += "- " + parameter.name + ": " + parameter.text + " Values " + numbersText(parameter.values)
                + "; default " + shortestText(parameter.preset);
        for (const skills::TriedValue &tried : parameter.tried)
            text += "; " + shortestText(tried.value) + " gave " + measuredText(tried.measured);
        text += ".\n";
    }
}

void addRisks(std::string &text, const skills::Card &card)
{
    text += "Risks:\n";
    for (const skills::Claim &risk : card.risks)
        text += std::string("- ") + skills::toString(skills::standingOf(card, risk)) + ": " + claimText(risk)
                + '\n';
    if (card.risks.empty())
        text += "- none\n";
}

/// Cut at a space, or else between characters.
std::string shortened(std::string text, std::size_t most)
{
    if (text.size() <= most)
        return text;
    std::size_t end = text.find_last_of(' ', most);
    if (end == std::string::npos)
        for (end = most; end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80;)
            --end;
    text.erase(end);
    while (!text.empty() && (text.back() == ',' || text.back() == ';' || text.back() == ':'))
        text.pop_back();
    return text + " …";
}

void addClaims(std::string &text, const char *heading, const std::vector<skills::Claim> &claims)
{
    text += std::string(heading) + ":\n";
    for (const skills::Claim &claim : claims)
        text += "- " + claimText(claim) + '\n';
    if (claims.empty())
        text += "- none\n";
}

void addFeatures(std::string &text, const char *heading, const std::vector<skills::Feature> &features)
{
    for (const skills::Feature &feature : features)
        text += std::string(heading) + ": " + feature.name + " at " + feature.locus + '\n';
}

std::string languageOf(const std::string &carrierFile)
{
    return kernel::languageOfFile(carrierFile).value_or(kernel::Surface().language()).commonFence;
}

} // namespace

std::string cardText(const skills::CardRecord &record)
{
    const skills::Card &card = record.card;
    std::string text = fmt::format("## Card {}\n\nRevision {}, category {}, locus {}, {}.\n", card.name,
                                   card.revision, card.category, card.locus, skills::toString(record.life()));
    text += "Intent: " + claimText(card.intent) + '\n';
    text += "Anchor: " + claimText(card.anchor) + '\n';
    text += needsText(card);
    addClaims(text, "Preconditions", card.preconditions);
    if (!card.triggers.empty())
        addClaims(text, "It pays when", card.triggers);
    addClaims(text, "Effects", card.effects);
    addParameters(text, card.parameters);
    addRisks(text, card);
    const skills::Scope verified = skills::verifiedScope(record);
    text += "Scope verified by roundtrips: "
            + (verified.cases.empty() ? std::string("nowhere yet") : scopeText(verified)) + '\n';
    text += "Scope claimed: " + scopeText(card.scope) + '\n';
    addFeatures(text, "Requires", card.requirements);
    addFeatures(text, "Provides", card.provides);
    addFeatures(text, "Conflicts with", card.conflicts);
    text += "Evidence: " + joined(card.evidence) + '\n';
    text += "Verification:\n";
    for (const skills::Verification &run : record.verifications)
        text += fmt::format("- {}: {}{}{} (revision {})\n", run.target, run.status,
                            run.expectedEffectObserved ? ", effect observed" : ", effect not observed",
                            run.heldOut ? ", held out" : "", run.cardRevision);
    if (record.verifications.empty())
        text += "- none\n";
    text += "Carrier:\n" + run::fenced(record.carrier, languageOf(card.carrierFile));
    if (!record.buildingBlock.empty())
        text += "Building block, complete device functions that compile alone:\n"
                + run::fenced(record.buildingBlock, languageOf(card.buildingBlockFile));
    return text;
}

std::string briefCardText(const skills::CardRecord &record)
{
    const skills::Card &card = record.card;
    std::string text =
        "## Card " + card.name + "\n\n" + card.intent.text + "\nActs on: " + card.anchor.text + '\n';
    const auto add = [&text](const char *heading, const std::vector<skills::Claim> &claims) {
        if (!claims.empty())
            text += std::string(heading) + ":\n";
        for (const skills::Claim &claim : claims)
            text += "- " + claim.text + (claim.when.empty() ? "" : " When " + claim.when + '.') + '\n';
    };
    add("Preconditions", card.preconditions);
    for (const skills::Parameter &parameter : card.parameters)
        text += "Parameter " + parameter.name + ": " + parameter.text + " Values "
                + numbersText(parameter.values) + "; default " + shortestText(parameter.preset) + ".\n";
    add("Risks", card.risks);
    text += "Carrier:\n" + run::fenced(record.carrier, languageOf(card.carrierFile));
    if (!record.buildingBlock.empty())
        text += "Building block, complete device functions that compile alone:\n"
                + run::fenced(record.buildingBlock, languageOf(card.buildingBlockFile));
    return text;
}

std::string indexLine(const skills::CardRecord &record)
{
    const skills::Card &card = record.card;
    const skills::Measured *best = nullptr;
    for (const skills::Claim &effect : card.effects) {
        const bool better = effect.measured && effect.measured->against == "parent"
                            && (!best || effect.measured->factor > best->factor);
        best = better ? &*effect.measured : best;
    }
    std::string needs;
    for (const std::string &feature : card.capability.features)
        needs += everyGpuHas.count(feature) > 0 ? "" : ' ' + feature;
    return "- " + card.name + (record.life() == skills::Life::Admitted ? "*" : "")
           + (best ? " " + fixedText(best->factor, 2) : std::string()) + needs + ": "
           + shortened(card.intent.text, mostIntentBytes) + '\n';
}

} // namespace klineage::policy
