// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/inputs.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace klineage::gate {

/// Terms of a sum of a product that an operand has (Distribution::terms and sumsDown).
[[nodiscard]] std::size_t termsOf(const HostTensor &tensor, const workload::Distribution &distribution);

/// Which terms of the sums of a product are large (Distribution::spike and pair), or otherwise not as usual (drift, termOctaves), as an operand of it has
/// them.
class LargeTerms
{
public:
    LargeTerms(const HostTensor &tensor, const workload::Distribution &distribution, std::uint64_t seed);

    [[nodiscard]] bool any() const
    {
        return m_d.spike != 0 || m_d.pair != 0 || m_d.drift != 0 || m_d.termOctaves != 0;
    }
    /// What the index-th element is, which would be `value`; nothing: just that.
    [[nodiscard]] std::optional<double> at(std::size_t index, double value) const;

private:
    void drawDrift();
    void drawOctaves();
    [[nodiscard]] std::size_t termAt(std::size_t index) const;

    const workload::Distribution &m_d;
    std::size_t m_rowLength;
    std::size_t m_terms;
    std::uint64_t m_seed;
    struct Pair {
        std::size_t first = 0; ///< or the term with a spike
        std::size_t second = 0;
    };
    std::vector<Pair> m_pairs;    ///< a row of the first operand has one of them
    std::vector<float> m_first;   ///< with drift: of each term, as the first operand has it
    std::vector<float> m_second;  ///< and as the second
    std::vector<float> m_factors; ///< with termOctaves
};

} // namespace klineage::gate
