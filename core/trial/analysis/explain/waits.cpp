// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/explain/waits.h"

#include "core/trial/metricnames.h"

#include <algorithm>

namespace klineage::gate {

const std::vector<TimeGroup> &timeGroups()
{
    using namespace metric;
    // Reasons as NVIDIA's samplers call them; what they mean: Nsight Compute, "Warp Stall Reasons". A full queue is no slow memory: its
    // remedy is fewer instructions, not fewer bytes.
    static const std::vector<TimeGroup> groups = {
        {"memory",
         "Waiting for global or local memory",
         {"long_scoreboard", "drain", "membar"},
         {dramBytes, l2HitRate, sectorsPerLoad, sectorsPerStore}},
        {"queue",
         "Waiting for room in the load/store and texture queues",
         {"lg_throttle", "tex_throttle"},
         {instExecuted, sectorsPerLoad, sectorsPerStore, localLoads, localStores}},
        {"shared",
         "Waiting for shared memory or special functions",
         {"short_scoreboard", "mio_throttle"},
         {sharedWavefronts, bankConflicts}},
        {"barriers", "Waiting at barriers or asleep", {"barrier", "sleeping"}, {tensorActive, warpsActive}},
        {"arithmetic",
         "Waiting for arithmetic pipes or their products",
         {"math_pipe_throttle", "gmma", "warpgroup_arrive"},
         {tensorActive, ffma, tensorInstructions}},
        {"issue",
         "Issuing, or ready to issue",
         {"selected", "not_selected", "dispatch_stall"},
         {instExecuted, issueActive}},
        {"latency",
         "Waiting for the instruction or branch before",
         {"wait", "branch_resolving"},
         {instExecuted, warpsActive}},
        {"fetch",
         "Waiting for code and constants",
         {"no_instructions", "no_instruction", "imc_miss"},
         {"binary_bytes"}},
        {idleGroup, "Multiprocessors without work", {}, {smActive, waves, blocks}},
        {busyGroup, "Multiprocessors at work", {}, {instExecuted, dramBytes, tensorActive}},
        {outsideGroup, "Between kernels", {}, {kernelTime}},
        {otherGroup, "Waiting for something else", {}, {}},
    };
    return groups;
}

std::string groupOfReason(std::string_view reason)
{
    for (const TimeGroup &group : timeGroups()) {
        if (std::find(group.reasons.begin(), group.reasons.end(), reason) != group.reasons.end())
            return group.id;
    }
    return otherGroup;
}

std::string metricOfReason(std::string_view reason)
{
    return reason == "no_instructions" ? metric::stallNoInstruction : "stall_" + std::string(reason);
}

} // namespace klineage::gate
