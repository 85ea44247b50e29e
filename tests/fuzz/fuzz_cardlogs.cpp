// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/logs.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::skills;

FuzzTarget fuzzTarget()
{
    const Review review{"0123456789abcdef", "2026-01-02T03:04:05Z", "Ada", 3, ReviewVerdict::Edit, "why", "",
                        "name = \"x\"\n"};
    const Verification verification{
        "2026-01-02T03:04:05Z", "softmax/pocl/K02", "0123456789abcdef", 1, "correct", true, true};
    FuzzTarget target;
    target.seeds = {writeReview(review), writeVerification(verification)};
    target.words = {
        "{",          "}",           "\"",           ":",       ",",   "null", "true", "1e9", "-1",
        "\"revert\"", "\"approve\"", "\"reverts\":", "\\u0000", "\xff"};
    target.runs = 8'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view line(reinterpret_cast<const char *>(data), size);
    if (const Result<Review> review = parseReview(line, "fuzz.jsonl:1")) {
        const Result<Review> again = parseReview(writeReview(*review), "written");
        require(again && writeReview(*again) == writeReview(*review), "writing and reading keep the review");
    } else {
        requireLocated(review.error(), "fuzz.jsonl:1:");
    }
    if (const Result<Verification> verification = parseVerification(line, "fuzz.jsonl:1")) {
        const Result<Verification> again = parseVerification(writeVerification(*verification), "written");
        require(again && writeVerification(*again) == writeVerification(*verification),
                "writing and reading keep the verification");
    } else {
        requireLocated(verification.error(), "fuzz.jsonl:1:");
    }
    return 0;
}
