// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace klineage::run {

/// Whole numbers by the names that a candidate has for them.
using NamedNumbers = std::map<std::string, std::set<double>>;

/// Those of a trial's candidate: its tunables as they were set, and constants and macros of its source ("STAGES = 3", "#define STAGES 3").
[[nodiscard]] NamedNumbers namedNumbers(const gate::Trial &trial, std::string_view source);

} // namespace klineage::run
