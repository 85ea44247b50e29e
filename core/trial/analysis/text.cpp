// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/text.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace klineage::gate {

std::string formatScaled(double value, const char *unit)
{
    constexpr const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
    std::size_t step = 0;
    for (; value >= 1000 && step + 1 < std::size(prefixes); ++step)
        value /= 1000;
    char text[48];
    std::snprintf(text, sizeof text, "%.4g %s%s", value, prefixes[step], unit);
    return text;
}

std::string formatShare(double ratio)
{
    char text[40];
    std::snprintf(text, sizeof text, ratio >= 0.0995 ? "%.0f %%" : "%.1f %%", 100 * ratio);
    return text;
}

std::string formatFigure(double value)
{
    char text[40];
    if (std::abs(value) >= 100 || value == std::floor(value))
        std::snprintf(text, sizeof text, "%.0f", value);
    else
        std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

} // namespace klineage::gate
