// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/shapes.h"

#include "core/base/cipherrandom.h"

#include <iterator>
#include <optional>

namespace klineage::gate {

namespace {

/// Content takes streams from 0 up.
constexpr std::uint64_t shapeStream = ~std::uint64_t{0};

/// The draw at which an axis has this value; nothing when it never has.
std::optional<std::uint64_t> drawOf(const workload::AxisRange &range, std::int64_t value)
{
    const std::int64_t above = value - range.low;
    if (above < 0 || above % range.step != 0 || above / range.step >= range.count())
        return std::nullopt;
    return static_cast<std::uint64_t>(above / range.step);
}

} // namespace

workload::Case drawCase(const workload::Case &c, std::uint64_t seed)
{
    CipherRandom random(seed, shapeStream);
    std::map<std::string, std::uint64_t> indices;
    std::uint64_t counter = 0;
    for (const auto &[axis, range] : c.drawn)
        indices[axis] = random.bits(counter++);
    // One draw in four has two equal axes, where they can be: kernels mistake one for the other elsewhere than in squares.
    if (indices.size() > 1 && random.bits(counter++) % 4 == 0) {
        const auto at = [&](std::uint64_t place) {
            return std::next(c.drawn.begin(), static_cast<int>(place));
        };
        const std::uint64_t first = random.bits(counter++) % indices.size();
        const std::uint64_t second =
            (first + 1 + random.bits(counter++) % (indices.size() - 1)) % indices.size();
        const auto &[axis, range] = *at(first);
        const auto steps =
            static_cast<std::int64_t>(indices[axis] % static_cast<std::uint64_t>(range.count()));
        if (const auto equal = drawOf(at(second)->second, range.low + steps * range.step))
            indices[at(second)->first] = *equal;
    }
    return workload::drawnAt(c, indices);
}

} // namespace klineage::gate
