// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cardjson.h"

#include "app/cli/format.h"

#include "core/skills/admission.h"
#include "core/skills/retrieval.h"

#include <nlohmann/json.hpp>

namespace klineage::cli {

using nlohmann::json;
using skills::CardRecord;

namespace {

json measuredJson(const skills::Measured &measured)
{
    return {{"trial", measured.trial},
            {"against", measured.against},
            {"factor", measured.factor},
            {"low", measured.low},
            {"high", measured.high}};
}

json claimJson(const skills::Claim &claim)
{
    json out{{"text", claim.text}, {"evidence", claim.evidence}};
    if (!claim.when.empty())
        out["when"] = claim.when;
    if (!claim.id.empty())
        out["id"] = claim.id;
    if (claim.measured)
        out["measured"] = measuredJson(*claim.measured);
    return out;
}

json risksJson(const skills::Card &card)
{
    json out = json::array();
    for (const skills::Claim &risk : card.risks) {
        out.push_back(claimJson(risk));
        out.back()["standing"] = skills::toString(skills::standingOf(card, risk));
    }
    return out;
}

json scopeJson(const skills::Scope &scope)
{
    return {{"cases", scope.cases},
            {"languages", scope.languages},
            {"platforms", scope.platforms},
            {"prior_actions", scope.priorActions}};
}

json parametersJson(const skills::Card &card)
{
    json out = json::array();
    for (const skills::Parameter &parameter : card.parameters) {
        json tried = json::array();
        for (const skills::TriedValue &value : parameter.tried)
            tried.push_back({{"value", value.value}, {"measured", measuredJson(value.measured)}});
        out.push_back({{"name", parameter.name},
                       {"text", parameter.text},
                       {"values", parameter.values},
                       {"default", parameter.preset},
                       {"tried", tried}});
    }
    return out;
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
            {"life_reason", skills::admissionOf(record).reason},
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
    out["risks"] = risksJson(card);
    out["scope"] = {{"verified", scopeJson(skills::verifiedScope(record))},
                    {"claimed", scopeJson(card.scope)}};
    out["format"] = card.format;
    out["anchor_words"] = card.anchorWords;
    out["capability"] = {{"features", card.capability.features},
                         {"dtypes", card.capability.dtypes},
                         {"families", card.capability.families},
                         {"toolchain", card.capability.toolchain}};
    out["triggers"] = claimsJson(card.triggers);
    out["parameters"] = parametersJson(card);
    out["probes"] = json::array();
    for (const skills::Probe &probe : card.probes)
        out["probes"].push_back({{"risk", probe.risk},
                                 {"text", probe.text},
                                 {"trial", probe.trial},
                                 {"verdict", probe.verdict},
                                 {"refutes", probe.refutes}});
    out["provides"] = featuresJson(card.provides);
    out["requires"] = featuresJson(card.requirements);
    out["conflicts"] = featuresJson(card.conflicts);
    out["evidence"] = card.evidence;
    out["imported"] = card.imported ? json{{"form", card.imported->form},
                                           {"origin", card.imported->origin},
                                           {"name", card.imported->name},
                                           {"license", card.imported->license},
                                           {"sha256", card.imported->sha256}}
                                    : json();
    out["carrier_file"] = card.carrierFile;
    out["carrier"] = record.carrier;
    out["building_block_file"] = card.buildingBlockFile;
    out["building_block"] = record.buildingBlock;
    out["verifications"] = json::array();
    for (const skills::Verification &run : record.verifications)
        out["verifications"].push_back({{"time", run.time},
                                        {"target", run.target},
                                        {"trial", run.trial},
                                        {"card_revision", run.cardRevision},
                                        {"status", run.status},
                                        {"expected_effect_observed", run.expectedEffectObserved},
                                        {"held_out", run.heldOut},
                                        {"card_hash", run.cardHash},
                                        {"run", run.run},
                                        {"reason", run.reason},
                                        {"factor", run.factor},
                                        {"low", run.low},
                                        {"high", run.high}});
    out["reviews"] = json::array();
    const std::set<std::string> reverted = record.revertedReviews();
    for (const skills::Review &review : record.reviews)
        out["reviews"].push_back(reviewJson(review, reverted.count(review.id) > 0));
    return out;
}

namespace {

json medianJson(const run::MedianFactor &factor)
{
    if (factor.count == 0)
        return {};
    return {{"count", factor.count},
            {"value", factor.median},
            {"low", factor.low},
            {"high", factor.high},
            {"interval", factor.isSpan      ? "span of the single intervals"
                         : factor.count > 1 ? "95 % of the median"
                                            : "95 % of the one trial"}};
}

json platformJson(const run::PlatformRecord &record)
{
    return {{"platform", record.platform}, {"shown", record.shown},
            {"applied", record.applied},   {"together", record.together},
            {"gained", record.gained},     {"no_gain", record.noGain},
            {"lost", record.lost},         {"undecided", record.undecided},
            {"wrong", record.wrong},       {"median_factor", medianJson(record.factor)}};
}

} // namespace

json applicationsJson(const run::ApplicationRecord &record, const std::string &card)
{
    json out{{"runs", record.runs},
             {"shown", 0},
             {"applied", 0},
             {"platforms", json::array()},
             {"candidates", json::array()}};
    const run::CardApplications *found = record.find(card);
    if (!found)
        return out;
    out["shown"] = found->shown();
    out["applied"] = found->applied();
    for (const run::PlatformRecord &platform : found->platforms)
        out["platforms"].push_back(platformJson(platform));
    for (const run::Application &application : found->applications)
        out["candidates"].push_back({{"run", application.run.empty() ? json() : json(application.run)},
                                     {"workload", application.workload},
                                     {"platform", application.platform},
                                     {"trial", application.trial},
                                     {"action", application.action},
                                     {"cards", application.cards},
                                     {"outcome", run::toString(application.outcome)},
                                     {"status", application.status},
                                     {"factor", jsonOf(application.factor)}});
    return out;
}

} // namespace klineage::cli
