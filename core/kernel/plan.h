// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidate.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace klineage::kernel {

/// A tensor or workspace with concrete extents.
struct ResolvedBuffer {
    std::string name;
    DType dtype = DType::F32;
    std::vector<std::int64_t> shape;            ///< outermost first
    WorkspaceInit init = WorkspaceInit::Poison; ///< workspaces only

    [[nodiscard]] std::int64_t elements() const;
    [[nodiscard]] std::int64_t bytes() const;
};

struct ResolvedTensorMap {
    std::string name;
    std::string buffer;
    DType dtype = DType::F32;
    std::vector<std::int64_t> dims;        ///< outermost first
    std::vector<std::int64_t> strideBytes; ///< outermost first, innermost left out
    std::vector<std::int64_t> box;         ///< outermost first
    Swizzle swizzle = Swizzle::None;
    L2Promotion l2Promotion = L2Promotion::None;
    TensorMapFill fill = TensorMapFill::Zero;
};

struct PointerValue {
    std::string buffer;
};
struct TensorMapValue {
    std::size_t index = 0;
}; ///< into ResolvedPlan::tensorMaps
struct ScalarValue {
    std::array<std::byte, 8> bytes{};
    std::size_t size = 0;
}; ///< in the target's representation
struct LocalValue {
    std::int64_t bytes = 0;
};
using ResolvedArg = std::variant<PointerValue, TensorMapValue, ScalarValue, LocalValue>;

struct ResolvedLaunch {
    std::string kernel;
    std::size_t index = 0; ///< of the launch in the candidate
    std::array<std::int64_t, 3> grid{1, 1, 1};
    std::array<std::int64_t, 3> block{1, 1, 1};
    std::array<std::int64_t, 3> cluster{1, 1, 1};
    std::int64_t sharedBytes = 0;
    bool cooperative = false;
    bool programmaticDependent = false;
    std::vector<ResolvedArg> args;
};

/// A launch plan with every expression evaluated for one case; guards that are 0 have been dropped.
struct ResolvedPlan {
    std::vector<ResolvedBuffer> workspaces;
    std::vector<ResolvedTensorMap> tensorMaps;
    std::vector<ResolvedLaunch> launches;
    bool usesLocal = true; ///< CUDA: threads may have memory of their own, though no attribute says so
};

/// How many warps a launch asks for, where the compiler decides about its threads: 1 to 32, a power of two. bindings: the tunables suffice.
[[nodiscard]] Result<std::int64_t> warpsOf(const Launch &launch, const Bindings &bindings);

/// tensors: the workload's, with the case's extents. bindings: axes, tunables and device facts.
/// Fails with the offending launch and expression: unknown names, extents outside [1, 2^31), work-groups over
/// 1024 threads, a plan without any launch, more than 16 GiB of workspace.
[[nodiscard]] Result<ResolvedPlan> resolvePlan(const Candidate &candidate,
                                               const std::vector<ResolvedBuffer> &tensors,
                                               const Bindings &bindings);

} // namespace klineage::kernel
