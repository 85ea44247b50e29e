// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

namespace klineage::skills {

// What the description of our SKILL.md has between and behind what the card says; who reads one back takes it out again.

inline constexpr std::string_view useWhenWords = " Use when: ";
inline constexpr std::string_view hypothesisWords = " A hypothesis: no roundtrip has admitted it yet.";

} // namespace klineage::skills
