// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/cardtext.h"

#include "core/kernel/surfaces/surface.h"
#include "core/talk/prompt.h"

namespace klineage::policy {

namespace {

std::string joined(const std::vector<std::string> &items)
{
    std::string text;
    for (const std::string &item : items)
        text += (text.empty() ? "" : ", ") + item;
    return text.empty() ? "none" : text;
}

std::string claimText(const skills::Claim &claim)
{
    return claim.text + (claim.evidence.empty() ? "" : " [" + joined(claim.evidence) + ']');
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
    std::string text = "## Card " + card.name + "\n\nRevision " + std::to_string(card.revision)
                       + ", category " + card.category + ", locus " + card.locus + ", "
                       + skills::toString(record.life()) + ".\n";
    text += "Intent: " + claimText(card.intent) + '\n';
    text += "Anchor: " + claimText(card.anchor) + '\n';
    addClaims(text, "Preconditions", card.preconditions);
    addClaims(text, "Effects", card.effects);
    addClaims(text, "Risks", card.risks);
    text += "Scope: workloads " + joined(card.scope.cases) + "; languages " + joined(card.scope.languages)
            + "; platforms " + joined(card.scope.platforms) + "; after " + joined(card.scope.priorActions)
            + '\n';
    addFeatures(text, "Requires", card.requirements);
    addFeatures(text, "Provides", card.provides);
    addFeatures(text, "Conflicts with", card.conflicts);
    text += "Evidence: " + joined(card.evidence) + '\n';
    text += "Verification:\n";
    for (const skills::Verification &run : record.verifications)
        text += "- " + run.target + ": " + run.status
                + (run.expectedEffectObserved ? ", effect observed" : ", effect not observed")
                + (run.heldOut ? ", held out" : "") + " (revision " + std::to_string(run.cardRevision)
                + ")\n";
    if (record.verifications.empty())
        text += "- none\n";
    text += "Carrier:\n";
    return text + run::fenced(record.carrier, languageOf(card.carrierFile));
}

} // namespace klineage::policy
