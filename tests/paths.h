// SPDX-License-Identifier: GPL-3.0-or-later
// Where the tests find things, and how they were built. One unit alone knows, so that all others are compiled once for every checkout
// and build.
#pragma once

#include <string>
#include <string_view>

namespace klineage::test {

/// The repository that this build was configured from, or what lies below it ("/workloads"). Absolute. Where a program was carried to
/// another machine, KLINEAGE_TEST_SOURCE says where that is.
[[nodiscard]] std::string sourcePath(std::string_view below = {});

/// The folder of the built programs, or what lies below it ("/klineage-gate"). Absolute; or as KLINEAGE_TEST_PROGRAMS says.
[[nodiscard]] std::string programPath(std::string_view below = {});

/// Whether this build runs under the sanitizers, where processes start slowly and loops take ten times as long.
[[nodiscard]] bool isSanitized();

} // namespace klineage::test
