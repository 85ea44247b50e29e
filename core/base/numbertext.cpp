// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/numbertext.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace klineage {

namespace {

/// The power of ten of the first digit, once the value is rounded to so many digits.
int exponentOf(double value, int digits)
{
    const std::string text = fmt::format("{:.{}e}", value, digits - 1);
    const std::size_t mark = text.find('e');
    int exponent = 0;
    if (mark != std::string::npos) // "e+05": from_chars takes no '+'
        std::from_chars(text.data() + mark + (text[mark + 1] == '+' ? 2 : 1), text.data() + text.size(),
                        exponent);
    return exponent;
}

} // namespace

std::string shortestText(double value)
{
    char buffer[32]; // fmt's own shortest text keeps ".0" and writes more numbers without an exponent
    return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string fixedText(double value, int decimals)
{
    return fmt::format("{:.{}f}", value, decimals);
}

std::string significantText(double value, int digits)
{
    return fmt::format("{:.{}g}", value, digits);
}

std::string digitsText(double value, int digits)
{
    return fixedText(value, std::max(0, digits - 1 - exponentOf(value, digits)));
}

std::string durationText(double ns, int digits, Zeros zeros)
{
    constexpr const char *units[] = {" ns", " µs", " ms", " s"};
    const int step = std::isfinite(ns) && ns > 0 ? std::clamp(exponentOf(ns, digits) / 3, 0, 3) : 0;
    std::string text = digitsText(ns / std::pow(1000.0, step), digits);
    if (zeros == Zeros::Dropped && text.find('.') != std::string::npos) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.back() == '.')
            text.pop_back();
    }
    return text + units[step];
}

double numberIn(std::string_view text)
{
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

} // namespace klineage
