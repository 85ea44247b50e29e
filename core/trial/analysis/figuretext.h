// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace klineage::gate {

/// "4.123 TB/s": four significant digits and a decimal prefix.
[[nodiscard]] std::string formatScaled(double value, const char *unit);
/// "12.3 %" of a ratio of 0.123; no decimal from 10 % on when it is whole.
[[nodiscard]] std::string formatShare(double ratio);
/// "1.23", "45.6", "789": three significant digits, never an exponent below a million.
[[nodiscard]] std::string formatFigure(double value);

} // namespace klineage::gate
