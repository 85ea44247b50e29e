// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cardjson.h"

#include <nlohmann/json.hpp>

namespace klineage::cli {

using nlohmann::json;
using skills::CardRecord;

namespace {

json claimJson(const skills::Claim &claim)
{
    return {{"text", claim.text}, {"evidence", claim.evidence}};
}

json claimsJson(const std::vector<skills::Claim> &claims)
{
    json out = json::array();
    for (const skills::Claim &claim : claims)
        out.push_back(claimJson(claim));
    return out;
}

json featuresJson(const std::vector<skills::Feature> &features)
{
    json out = json::array();
    for (const skills::Feature &feature : features)
        out.push_back({{"locus", feature.locus}, {"name", feature.name}});
    return out;
}

} // namespace

json reviewJson(const skills::Review &review, bool reverted)
{
    return {{"id", review.id},
            {"time", review.time},
            {"author", review.author},
            {"card_revision", review.cardRevision},
            {"verdict", skills::toString(review.verdict)},
            {"reason", review.reason},
            {"reverts", review.reverts.empty() ? json() : json(review.reverts)},
            {"reverted", reverted}};
}

json cardSummaryJson(const CardRecord &record)
{
    const skills::Review *standing = record.standingReview();
    return {{"name", record.card.name},
            {"life", skills::toString(record.life())},
            {"revision", record.card.revision},
            {"category", record.card.category},
            {"locus", record.card.locus},
            {"intent", record.card.intent.text},
            {"review", standing ? reviewJson(*standing, false) : json()},
            {"notices", record.notices}};
}

json cardJson(const CardRecord &record)
{
    const skills::Card &card = record.card;
    json out = cardSummaryJson(record);
    out["intent"] = claimJson(card.intent);
    out["anchor"] = claimJson(card.anchor);
    out["preconditions"] = claimsJson(card.preconditions);
    out["effects"] = claimsJson(card.effects);
    out["risks"] = claimsJson(card.risks);
    out["scope"] = {{"cases", card.scope.cases},
                    {"languages", card.scope.languages},
                    {"platforms", card.scope.platforms},
                    {"prior_actions", card.scope.priorActions}};
    out["provides"] = featuresJson(card.provides);
    out["requires"] = featuresJson(card.requirements);
    out["conflicts"] = featuresJson(card.conflicts);
    out["evidence"] = card.evidence;
    out["carrier_file"] = card.carrierFile;
    out["carrier"] = record.carrier;
    out["verifications"] = json::array();
    for (const skills::Verification &run : record.verifications)
        out["verifications"].push_back({{"time", run.time},
                                        {"target", run.target},
                                        {"trial", run.trial},
                                        {"card_revision", run.cardRevision},
                                        {"status", run.status},
                                        {"expected_effect_observed", run.expectedEffectObserved},
                                        {"held_out", run.heldOut}});
    out["reviews"] = json::array();
    const std::set<std::string> reverted = record.revertedReviews();
    for (const skills::Review &review : record.reviews)
        out["reviews"].push_back(reviewJson(review, reverted.count(review.id) > 0));
    return out;
}

} // namespace klineage::cli
