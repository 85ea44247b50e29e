// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"

namespace klineage::interop {

inline constexpr const char *referenceName = "reference.py";

/// Writes a workload whose oracle's source is in it: workloads/<name>/reference.py and workload.toml. Errors: Io.
[[nodiscard]] Status storeWorkload(const std::filesystem::path &workloads, workload::Workload workload);

/// Copies what another workload is about to be stored over, workload.toml and reference.py, into a folder beside them: replaced-1, or
/// the next number that is free. Returns that folder. Errors: Io.
[[nodiscard]] Result<std::filesystem::path> keepReplaced(const std::filesystem::path &folder);

} // namespace klineage::interop
