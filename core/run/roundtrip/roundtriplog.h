// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/roundtrip/roundtrip.h"

namespace klineage::run {

/// Where log, candidates and trials of a lineage's roundtrips are.
[[nodiscard]] std::filesystem::path roundtripFolder(const std::filesystem::path &lineageDirectory);
[[nodiscard]] Status appendRoundtrip(const std::filesystem::path &lineageDirectory,
                                     const RoundtripLine &line);

} // namespace klineage::run
