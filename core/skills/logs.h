// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <string>
#include <string_view>

namespace klineage::skills {

// Lines of reviews.jsonl and verification.jsonl. Strict: unknown keys are errors with a suggestion; where is "file:line".

[[nodiscard]] std::string writeReview(const Review &review); ///< one line, no newline
[[nodiscard]] Result<Review> parseReview(std::string_view line, const std::string &where);

[[nodiscard]] std::string writeVerification(const Verification &verification);
[[nodiscard]] Result<Verification> parseVerification(std::string_view line, const std::string &where);

} // namespace klineage::skills
