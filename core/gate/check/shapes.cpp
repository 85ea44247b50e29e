// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/shapes.h"

#include "core/base/cipherrandom.h"

namespace klineage::gate {

namespace {

/// Content takes streams from 0 up.
constexpr std::uint64_t shapeStream = ~std::uint64_t{0};

} // namespace

workload::Case drawCase(const workload::Case &c, std::uint64_t seed)
{
    CipherRandom random(seed, shapeStream);
    std::map<std::string, std::uint64_t> indices;
    std::uint64_t counter = 0;
    for (const auto &[axis, range] : c.drawn)
        indices[axis] = random.bits(counter++);
    return workload::drawnAt(c, indices);
}

} // namespace klineage::gate
