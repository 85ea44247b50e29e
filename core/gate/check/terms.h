// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/inputs.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace klineage::gate {

/// Terms of a sum of a product that an operand has (Distribution::terms and sumsDown).
[[nodiscard]] std::size_t termsOf(const HostTensor &tensor, const workload::Distribution &distribution);

/// Which terms of the sums of a product are large (Distribution::spike and pair), as an operand of it has them.
class LargeTerms
{
public:
    LargeTerms(const HostTensor &tensor, const workload::Distribution &distribution, std::uint64_t seed);

    [[nodiscard]] bool any() const { return m_d.spike != 0 || m_d.pair != 0; }
    /// What the index-th element is, which would be `value`; nothing: just that.
    [[nodiscard]] std::optional<double> at(std::size_t index, double value) const;

private:
    const workload::Distribution &m_d;
    std::size_t m_rowLength;
    std::size_t m_terms;
    std::uint64_t m_seed;
    std::size_t m_first = 0;  ///< the term with a spike, or the first of the pair
    std::size_t m_second = 0; ///< of the pair
};

} // namespace klineage::gate
