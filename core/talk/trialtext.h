// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <cstddef>
#include <string>

namespace klineage::policy {

/// What a candidate's author is told about its trial: the verdict with its evidence, hint and log; when it was timed, latency, speedups
/// and what bounds it. Never the seeds, inputs or raw samples. The same text in every locale.
[[nodiscard]] std::string trialText(const gate::Trial &trial, std::size_t mostLogBytes = 4096);

/// "12.340 µs": three decimals of µs, ms or s. Prompts and steps of recorded runs hold it, so it never changes.
[[nodiscard]] std::string latencyText(double ns);

} // namespace klineage::policy
