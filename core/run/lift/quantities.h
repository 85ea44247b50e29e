// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klineage::run {

/// A measured figure in a sentence: "2.1×", "14 %", "12.5 µs", "1.2 TFLOP/s".
struct Quantity {
    enum class Kind { Factor, Percent, Time, Rate };
    Kind kind = Kind::Factor;
    double value = 0; ///< Time in ns, Rate in base units a second, Percent in percent
    double half = 0;  ///< half of its last digit: what rounding may have changed
    std::string text; ///< as it stands there
};

/// Numbers with a unit. "16 × 16" and "4 × K" are shapes, and numbers without a unit (16 columns) are none.
[[nodiscard]] std::vector<Quantity> quantitiesIn(std::string_view text);

} // namespace klineage::run
