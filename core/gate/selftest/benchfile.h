// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/kernel/candidate.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// A candidate on which the gate measures itself.
struct BenchCase {
    std::string name;
    kernel::Surface surface;
    std::filesystem::path workload;  ///< folder of a workload.toml
    std::filesystem::path candidate; ///< file
    bool latency = false; ///< how long a verdict takes; otherwise how well one kernel is told from another
    std::filesystem::path parent; ///< of a latency case: what its candidate is compared with; empty: nothing
    /// A planted slowdown: the first `find` in the source becomes `put`, in which "@CYCLES@" is a number. Empty: none.
    std::string find;
    std::string put;
};

/// Reads directory/bench.toml: [[case]] name, workload, candidate, kind = "latency" | "discrimination", parent, find, put. Paths are relative
/// to the folder. Fails too when a file that it names is not there.
[[nodiscard]] Result<std::vector<BenchCase>> readBench(const std::filesystem::path &directory);

/// The source with a delay of so many cycles planted; fails when `find` is not in it.
[[nodiscard]] Result<std::string> plantDelay(const BenchCase &benchCase, const std::string &source,
                                             long cycles);

} // namespace klineage::gate
