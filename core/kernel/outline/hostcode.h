// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/surfaces/surface.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::kernel {

/// `k<<<grid, block, shared>>>(args)` in host code, as it is written there. Nothing is computed: names are the host's.
struct HostLaunch {
    std::string kernel;                         ///< without namespaces and template arguments
    std::vector<std::string> templateArguments; ///< "128", "float"
    std::vector<std::string> grid;              ///< of a dim3 up to three, x first
    std::vector<std::string> block;
    std::string shared; ///< bytes; empty: nothing is said
    std::vector<std::string> args;
    /// What names stand for there: variables and constants with the expression that they are set to, constants of macros.
    std::map<std::string, std::string, std::less<>> values;
    int line = 1;
};

/// A source that nvcc compiles, with the part of it that a candidate can have.
struct DeviceSource {
    std::string code;                 ///< without host functions and the headers that only they use
    std::vector<HostLaunch> launches; ///< in the order of the source, at most maxHostLaunches
    std::vector<std::string> notices; ///< what was cut and changed, whole sentences
    [[nodiscard]] bool isChanged() const { return !notices.empty(); }
};

inline constexpr std::size_t maxHostLaunches = 64;
inline constexpr std::size_t maxHostValues = 1'000;

/// Cuts host code off and gives kernels that have none C linkage, so that a plan can launch them by their names: `extern "C"`, or a kernel
/// that calls a template with the arguments of its launch. A source that needs nothing of this, or of another language than CUDA C++,
/// stays byte for byte as it is. Linear but for the names that expressions are made of; the source may be anything.
[[nodiscard]] DeviceSource deviceSourceOf(std::string_view source, Surface surface);

} // namespace klineage::kernel
