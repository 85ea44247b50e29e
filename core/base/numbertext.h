// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace klineage {

// Numbers as text, with a '.' whatever the locale is. What is not finite is "inf", "-inf" or "nan".

/// The shortest text that reads back as the same number.
[[nodiscard]] std::string shortestText(double value);
/// "0.0123": so many decimals.
[[nodiscard]] std::string fixedText(double value, int decimals);
/// "366", "1.5e+09": at most so many digits that count, no zeros at the end ("%.*g").
[[nodiscard]] std::string significantText(double value, int digits);
/// "209.4", "9.000": so many digits that count, zeros too, never an exponent.
[[nodiscard]] std::string digitsText(double value, int digits);
/// Zeros at the end of decimals: kept where figures stand below each other, dropped in sentences.
enum class Zeros { Dropped, Kept };
/// "209.4 µs": so many digits that count, and the unit that leaves a number below 1000 (of ns, µs, ms, s; more than 999 s stay s).
[[nodiscard]] std::string durationText(double ns, int digits, Zeros zeros = Zeros::Dropped);

/// The number that a text begins with; 0 when it begins with none.
[[nodiscard]] double numberIn(std::string_view text);

} // namespace klineage
