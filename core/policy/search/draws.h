// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/random.h"

#include <cstddef>
#include <cstdint>

namespace klineage::policy {

/// The draws of a search: the same from the same seed on every machine, whatever its standard library.
class Draws
{
public:
    explicit Draws(std::uint64_t seed)
        : m_random(seed)
    {}

    /// In [0, 1).
    [[nodiscard]] double uniform() { return m_random.uniform(m_drawn++); }
    /// Below limit, which is at least 1.
    [[nodiscard]] std::size_t below(std::size_t limit)
    {
        return static_cast<std::size_t>(uniform() * static_cast<double>(limit));
    }

private:
    CounterRandom m_random;
    std::uint64_t m_drawn = 0;
};

} // namespace klineage::policy
