// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/outline/hostcode.h"
#include "core/workload/guess/plandraft.h"

#include <span>

namespace klineage::workload {

/// A plan that may be right, and what it rests on.
struct PlanGuess {
    PlanDraft draft;
    std::vector<std::string>
        why; ///< one an argument: "by its name", "by its place among the inputs", or what to say; draft.args is "" then
    std::vector<std::string> notices; ///< of the host's launch what could not be read, whole sentences
};

/// Proposes how to launch a kernel of the code for a workload: arguments by name, then by type and order; blocks by the kernel's own
/// attributes or the surface's custom; a grid that covers the first output, by element or by row as the code looks. Never fails; what
/// it cannot tell is left empty. It is a guess: the gate decides. launches: those of the host code that came with it; the first one of this
/// kernel says grid, block, shared memory and arguments, as far as they can be told in the workload's words.
[[nodiscard]] PlanGuess guessPlan(std::string_view code, kernel::Surface surface,
                                  const kernel::KernelFunction &kernel, const Workload &workload,
                                  std::span<const kernel::HostLaunch> launches = {});

/// The kernel that one would take: the first that is launched, else the first that a plan can launch, else the first; nothing when there
/// is none.
[[nodiscard]] const kernel::KernelFunction *likelyKernel(const kernel::SourceOutline &outline,
                                                         std::span<const kernel::HostLaunch> launches = {});

/// Of these workloads the one whose tensors and axes the kernels' parameters name most; nothing when none of them is named.
[[nodiscard]] const Workload *likelyWorkload(const kernel::SourceOutline &outline,
                                             const std::vector<Workload> &workloads);

/// Why an argument does not fit its parameter, a sentence; empty: it may. tunables: names that expressions may use besides.
[[nodiscard]] std::string argumentProblem(const kernel::KernelParameter &parameter, const std::string &arg,
                                          const Workload &workload,
                                          const std::vector<kernel::Tunable> &tunables);

} // namespace klineage::workload
