// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the compilers of Triton and TileLang are told of a plan's launches, and what they decide about them. A kernel of Triton has no types:
// they are those of what the plan passes. What the compiler may rely on follows from that too: every buffer begins at a multiple of 256 bytes,
// and a scalar is a multiple of 16 where the plan says so, which every case is held to (kernel::resolvePlan()). A kernel of TileLang says its
// types itself, and its compiler holds them against what the plan passes.
#pragma once

#include "core/device/backend.h"
#include "core/kernel/plan.h"
#include "core/workload/workload.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace klineage::gate {

/// The launches as resources/python/tritoncompiler.py and tilelangcompiler.py take them, as JSON. InvalidInput: what the plan cannot say here, such as a box that
/// depends on a shape.
[[nodiscard]] Result<std::string> describeLaunches(const kernel::Candidate &candidate,
                                                   const workload::Workload &workload,
                                                   const std::map<std::string, std::int64_t> &tunables);

/// The same for a candidate file in a workload's folder, whose workload.toml is read. Empty where the compiler is told nothing of launches.
[[nodiscard]] Result<std::string> describeLaunchesOf(const kernel::Candidate &candidate,
                                                     const std::filesystem::path &file,
                                                     const std::map<std::string, std::int64_t> &tunables);

/// Gives each launch of a resolved plan its threads, shared memory and maps, and the arguments that Triton's kernels take beside the plan's: behind
/// a tensor map its extents and strides, and in the end pointers: to a workspace where they need memory of their own, as for tensor descriptors
/// that a kernel makes, and to nothing where they do not. TileLang's kernels take some of the plan's, in the order that the compiler says, and maps
/// that it made of the plan's tensors. decisions: one a launch of the candidate. tensors, bindings: what the plan was resolved with.
[[nodiscard]] Status applyDecisions(const std::vector<CompiledLaunch> &decisions,
                                    const std::vector<kernel::ResolvedBuffer> &tensors,
                                    const kernel::Bindings &bindings, kernel::ResolvedPlan &plan);

} // namespace klineage::gate
