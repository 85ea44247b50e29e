// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/logs.h"

#include "core/base/suggest.h"
#include "core/files/jsonreader.h"
#include "core/files/jsontext.h"

#include <array>
#include <limits>

namespace klineage::skills {

using files::JsonReader;
using files::OrderedJson;
using nlohmann::json;

namespace {

constexpr std::array verdicts{ReviewVerdict::Approve, ReviewVerdict::Reject, ReviewVerdict::NeedsEvidence,
                              ReviewVerdict::Edit,    ReviewVerdict::Revert, ReviewVerdict::Comment};
constexpr std::size_t maxBeforeBytes = std::size_t{1} << 20; // as large as card.toml itself may be

ReviewVerdict readVerdict(JsonReader &reader)
{
    const std::string name = reader.text("verdict", 64);
    std::vector<std::string> known;
    for (const ReviewVerdict verdict : verdicts) {
        if (name == toString(verdict))
            return verdict;
        known.emplace_back(toString(verdict));
    }
    reader.refuse("verdict", "is '" + name + "'; expected " + quotedList(known) + didYouMean(name, known));
}

int readRevision(JsonReader &reader)
{
    const std::int64_t revision = reader.integer("card_revision");
    if (revision < 1 || revision > std::numeric_limits<int>::max())
        reader.refuse("card_revision",
                      "is " + std::to_string(revision) + "; a whole number from 1 was expected");
    return static_cast<int>(revision);
}

} // namespace

std::string writeReview(const Review &review)
{
    OrderedJson out{{"id", review.id},
                    {"time", review.time},
                    {"author", review.author},
                    {"card_revision", review.cardRevision},
                    {"verdict", toString(review.verdict)}};
    files::setUnlessEmpty(out, "reason", review.reason);
    files::setUnlessEmpty(out, "reverts", review.reverts);
    files::setUnlessEmpty(out, "before", review.before);
    return files::oneLine(out);
}

Result<Review> parseReview(std::string_view line, const std::string &where)
{
    return files::parseJsonLine(line, where, [](const json &value) {
        JsonReader reader(value, {});
        Review review;
        review.id = reader.text("id", 256);
        review.time = reader.text("time", 256);
        review.author = reader.text("author", 1024);
        review.cardRevision = readRevision(reader);
        review.verdict = readVerdict(reader);
        review.reason = reader.optionalText("reason");
        review.reverts = reader.optionalText("reverts", 256);
        review.before = reader.optionalText("before", maxBeforeBytes);
        reader.finish();
        if (review.id.empty())
            reader.refuse("id", "is empty");
        if ((review.verdict == ReviewVerdict::Revert) == review.reverts.empty())
            reader.refuse(
                "verdict",
                "and 'reverts' do not fit: a revert, and only a revert, names the event it takes back");
        return review;
    });
}

std::string writeVerification(const Verification &verification)
{
    OrderedJson out{
        {"time", verification.time},       {"target", verification.target},
        {"trial", verification.trial},     {"card_revision", verification.cardRevision},
        {"status", verification.status},   {"expected_effect_observed", verification.expectedEffectObserved},
        {"held_out", verification.heldOut}};
    files::setUnlessEmpty(out, "card_hash", verification.cardHash);
    files::setUnlessEmpty(out, "run", verification.run);
    files::setUnlessEmpty(out, "reason", verification.reason);
    if (verification.factor > 0) {
        out["factor"] = verification.factor;
        out["low"] = verification.low;
        out["high"] = verification.high;
    }
    return files::oneLine(out);
}

Result<Verification> parseVerification(std::string_view line, const std::string &where)
{
    return files::parseJsonLine(line, where, [](const json &value) {
        JsonReader reader(value, {});
        Verification run;
        run.time = reader.text("time", 256);
        run.target = reader.text("target", 1024);
        run.trial = reader.text("trial", 256);
        run.cardRevision = readRevision(reader);
        run.status = reader.text("status", 64);
        run.expectedEffectObserved = reader.boolean("expected_effect_observed");
        run.heldOut = reader.boolean("held_out");
        run.cardHash = reader.optionalText("card_hash", 64);
        run.run = reader.optionalText("run", 256);
        run.reason = reader.optionalText("reason", 1024);
        run.factor = reader.optionalNumber("factor", 0);
        run.low = reader.optionalNumber("low", 0);
        run.high = reader.optionalNumber("high", 0);
        reader.finish();
        return run;
    });
}

} // namespace klineage::skills
