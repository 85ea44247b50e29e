// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/journal.h"

namespace klineage::run {

/// A name for a new run, made from its workload, policy (or kind) and the time, that runsDirectory does not have yet.
[[nodiscard]] std::string freshRunId(const std::filesystem::path &runsDirectory, const Settings &settings);

} // namespace klineage::run
