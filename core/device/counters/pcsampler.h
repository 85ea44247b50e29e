// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/listing.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

struct CUctx_st;

namespace klineage::gate::counters {

/// Where the warps of a run stood, as samples of their program counters.
struct PcSamples {
    std::vector<ListedInstruction> instructions; ///< those that were hit, without their text
    std::uint64_t samples = 0;                   ///< of the candidate's kernels
    std::uint64_t dropped = 0;                   ///< by the hardware, when they came too fast
    std::uint32_t periodCycles = 0;              ///< between two samples of an SM
};

/// PC sampling on one context. It is enabled before the modules that it is to know are loaded, and excludes other counters meanwhile.
class PcSampler
{
public:
    [[nodiscard]] static Result<std::unique_ptr<PcSampler>> enable(CUctx_st *context);
    virtual ~PcSampler() = default;
    PcSampler(const PcSampler &) = delete;
    PcSampler &operator=(const PcSampler &) = delete;

    /// Samples runs of something; run() executes it once and waits. cubin: the module that the kernels are from, whose line table
    /// leads from instructions to lines of the candidate's file; instructions of included headers are at line 0.
    [[nodiscard]] virtual Result<PcSamples> sample(const std::function<Status(std::size_t pass)> &run,
                                                   std::span<const std::byte> cubin) = 0;

protected:
    PcSampler() = default;
};

/// The line of the candidate's file that an instruction comes from; 0: none. Needs no device.
[[nodiscard]] Result<int> sourceLine(std::span<const std::byte> cubin, const std::string &kernel,
                                     std::uint64_t pcOffset);

} // namespace klineage::gate::counters
