// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/rawbytes.h"
#include "core/kernel/dtype.h"
#include "core/workload/workload.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace klineage::gate {

/// A dense row-major tensor in host memory, packed as its dtype.
struct HostTensor {
    std::string name;
    workload::Role role = workload::Role::Input;
    kernel::DType dtype = kernel::DType::F32;
    std::vector<std::int64_t> shape;
    RawBytes bytes;

    [[nodiscard]] std::size_t elements() const;
    /// Length of the innermost dimension.
    [[nodiscard]] std::size_t rowLength() const
    {
        return shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
    }
};

/// How the terms of a sum of so many are paired by a seed, for Distribution::cancels: term t and its partner are there once each, the partner of
/// an odd one out is itself; window: both are of the same aligned so many; 0: of all. Of a pair one operand has equal elements (of mean 1/2) and the other opposite ones; which, differs from pair to
/// pair, so that neither a row nor a part of it says whether it is paired.
struct Pairing {
    std::vector<std::size_t> partner;
    std::vector<bool> isFirst;       ///< of its pair
    std::vector<bool> equalInSecond; ///< the second operand has the equal elements
};
[[nodiscard]] Pairing pairingOf(std::size_t terms, std::uint64_t seed, std::size_t window = 0);

/// The window of a distribution that cancels: 16, 32 or 64 as the seed has it where pairs are near, of eight bits always 16.
[[nodiscard]] std::size_t pairWindow(const workload::Distribution &distribution, kernel::DType dtype,
                                     std::uint64_t seed);

/// Fills tensor.bytes: the same (seed, stream, distribution, dtype, shape) gives the same bytes on every machine with the same
/// mathematical library and any number of threads. Multi-threaded.
void generate(HostTensor &tensor, const workload::Distribution &distribution, std::uint64_t seed,
              std::uint64_t stream);

/// All tensors of a case with its inputs generated (outputs have no bytes). Fails when an extent is out of range or the case needs
/// more than 64 GiB.
[[nodiscard]] Result<std::vector<HostTensor>> generateCase(const workload::Workload &workload,
                                                           const workload::Case &c, std::uint64_t seed);

} // namespace klineage::gate
