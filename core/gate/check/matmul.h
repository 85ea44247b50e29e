// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace klineage::gate {

/// out[m, n] = a[m, k] · b in double, every product and sum; b is [k, n], or [n, k] when transposeB. Row-major.
/// Multi-threaded and vectorised.
[[nodiscard]] std::vector<double> matmul(std::span<const float> a, std::span<const float> b, std::size_t m,
                                         std::size_t n, std::size_t k, bool transposeB);
/// The same with a of doubles, and b [k, n].
[[nodiscard]] std::vector<double> matmul(std::span<const double> a, std::span<const float> b, std::size_t m,
                                         std::size_t n, std::size_t k);

} // namespace klineage::gate
