// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"

namespace klineage::interop {

inline constexpr const char *referenceName = "reference.py";

/// Writes a workload whose oracle's source is in it: workloads/<name>/reference.py and workload.toml. Errors: Io.
[[nodiscard]] Status storeWorkload(const std::filesystem::path &workloads, workload::Workload workload);

} // namespace klineage::interop
