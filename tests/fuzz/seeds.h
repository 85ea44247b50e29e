// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/fuzz/target.h"

/// Longer inputs say nothing that shorter ones do not, and take longer.
inline constexpr std::size_t longestFuzzInput = 64 * 1024;

/// What every run of a target begins with: its own texts, then the files below workloads/ and skills/ that it asks for, cut as it
/// says. The same order on every machine.
[[nodiscard]] std::vector<std::string> collectSeeds(const FuzzTarget &target);
