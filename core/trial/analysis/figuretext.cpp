// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/figuretext.h"

#include "core/base/numbertext.h"

#include <cmath>
#include <iterator>

namespace klineage::gate {

std::string formatScaled(double value, const char *unit)
{
    constexpr const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
    std::size_t step = 0;
    for (; value >= 1000 && step + 1 < std::size(prefixes); ++step)
        value /= 1000;
    return significantText(value, 4) + ' ' + prefixes[step] + unit;
}

std::string formatShare(double ratio)
{
    return fixedText(100 * ratio, ratio >= 0.0995 ? 0 : 1) + " %";
}

std::string formatFigure(double value)
{
    const bool isWhole = std::abs(value) >= 100 || value == std::floor(value);
    return isWhole ? fixedText(value, 0) : significantText(value, 3);
}

} // namespace klineage::gate
