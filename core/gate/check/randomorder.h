// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace klineage::gate {

/// 0 … count - 1 in an order that draw() decides (Fisher–Yates). draw() gives 64 random bits.
template <typename Draw>
[[nodiscard]] std::vector<std::size_t> randomOrder(std::size_t count, Draw &&draw)
{
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; --i)
        std::swap(order[i - 1], order[draw() % i]);
    return order;
}

} // namespace klineage::gate
