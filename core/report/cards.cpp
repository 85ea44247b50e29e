// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/listtext.h"
#include "core/report/figuretext.h"
#include "core/report/parts.h"

#include <algorithm>

namespace klineage::report {

namespace {

std::string claimsText(const std::vector<skills::Claim> &claims)
{
    std::vector<std::string> texts;
    for (const skills::Claim &claim : claims)
        texts.push_back(claim.text);
    return joined(texts, "; ");
}

std::string reviewText(const skills::CardRecord &record)
{
    const skills::Review *review = record.standingReview();
    if (!review)
        return "none yet";
    std::string text = skills::toString(review->verdict);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text + (review->author.empty() ? std::string() : ", " + review->author);
}

/// "layernorm/pocl/K00: effect observed, held out"
std::string verificationText(const skills::CardRecord &record)
{
    std::vector<std::string> texts;
    for (const skills::Verification &verification : record.verifications) {
        std::string text =
            verification.target + ": " + verification.status
            + (verification.expectedEffectObserved ? ", effect observed" : ", effect not observed")
            + (verification.heldOut ? ", held out" : "");
        texts.push_back(std::move(text));
    }
    return texts.empty() ? "not tried elsewhere" : joined(texts, "; ");
}

} // namespace

Table cardTable(const Workspace &workspace, const lineage::Lineage &lineage)
{
    Table table{{{"Card"}, {"Steps"}, {"Life"}, {"Review"}, {"Intent"}, {"Claimed effect"}, {"Roundtrips"}},
                {}};
    std::vector<std::string> names;
    for (const lineage::Transition &step : lineage.transitions) {
        if (!step.card.empty() && std::find(names.begin(), names.end(), step.card) == names.end())
            names.push_back(step.card);
    }
    for (const std::string &name : names) {
        std::vector<std::string> steps;
        for (const lineage::Transition &step : lineage.transitions) {
            if (step.card == name)
                steps.push_back(step.from + " → " + step.to);
        }
        const skills::CardRecord *record = workspace.findCard(name);
        if (!record) {
            table.rows.push_back(
                {name, joined(steps, ", "), "not in this workspace", nothing, nothing, nothing, nothing});
            continue;
        }
        table.rows.push_back({name, joined(steps, ", "), skills::toString(record->life()),
                              reviewText(*record), record->card.intent.text, claimsText(record->card.effects),
                              verificationText(*record)});
    }
    return table;
}

} // namespace klineage::report
