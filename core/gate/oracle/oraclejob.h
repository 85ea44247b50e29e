// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/inputs.h"
#include "core/kernel/candidate.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace klineage::gate {

/// What one kernel of ours needs to compute the expected output of a case on a CUDA device.
struct OracleJob {
    struct Buffer {
        std::string name; ///< as the kernel's plan calls it
        std::span<const std::byte> bytes;
    };
    const char *text = nullptr; ///< candidate file
    const char *name = nullptr;
    std::map<std::string, std::int64_t> tunables; ///< all of them
    kernel::Bindings sizes;                       ///< what the plan's expressions name besides
    std::vector<Buffer> inputs;                   ///< views into the tensors, and into `made`
    std::vector<std::vector<std::byte>> made;     ///< inputs that are no tensor's own bytes
    std::string output;                           ///< the tensor; the plan calls it "out"
    std::size_t elements = 0;                     ///< of the output
    bool wide = true;                             ///< the output is of doubles, otherwise of floats

    OracleJob() = default;
    OracleJob(OracleJob &&) = default; // not copied, because of the views
    OracleJob &operator=(OracleJob &&) = default;
};

/// The job for a workload's oracle: matmul_nn, matmul_nt, matmul_grouped_nn, conv2d_nhwc, attention_varlen and attention_varlen_causal over floating-point
/// types of at most 32 bits. The tensors must outlive it. Unavailable, with a clause that says why, when there is no kernel for it or the
/// tensors are not such as the oracle takes (which the CPU's says better).
[[nodiscard]] Result<OracleJob> oracleJobOf(const workload::Workload &workload,
                                            const std::vector<HostTensor> &tensors, bool wide);

/// Whether single precision is enough for the expected outputs of a case: their type keeps at most 11 bits of each, so that 2^-24 of
/// a value is next to nothing, and they need not be equal to the last bit.
[[nodiscard]] bool narrowIsEnough(const std::vector<HostTensor> &tensors,
                                  const workload::Tolerance &tolerance);

} // namespace klineage::gate
