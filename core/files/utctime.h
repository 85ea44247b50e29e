// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <string>

namespace klineage::files {

/// ISO 8601 in UTC with milliseconds, "2026-03-01T12:34:56.789Z": sorts as text in order of time.
[[nodiscard]] std::string formatUtc(std::chrono::system_clock::time_point time);
[[nodiscard]] std::string nowUtc();

} // namespace klineage::files
