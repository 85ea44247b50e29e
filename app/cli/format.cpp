// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/format.h"

#include "core/base/numbertext.h"
#include "core/lineage/rederived.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace klineage::cli {

std::string formatNs(double ns)
{
    return durationText(ns, 4, Zeros::Kept);
}

std::string formatLatency(const gate::Interval &ns)
{
    if (ns.value <= 0)
        return "–";
    const double halfWidth = std::max(ns.high - ns.value, ns.value - ns.low) / ns.value * 100;
    return formatNs(ns.value) + " ±" + fixedText(halfWidth, 2) + " %";
}

std::string formatSpeedup(const gate::Interval &speedup)
{
    return digitsText(speedup.value, 4) + "× [" + digitsText(speedup.low, 4) + ", "
           + digitsText(speedup.high, 4) + "]";
}

std::string formatRate(double perSecond, const char *unit)
{
    constexpr const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
    std::size_t index = 0;
    while (perSecond >= 1e3 && index + 1 < std::size(prefixes)) {
        perSecond /= 1e3;
        ++index;
    }
    return digitsText(perSecond, 4) + ' ' + prefixes[index] + unit + "/s";
}

std::string formatLatency(const std::optional<gate::Interval> &ns)
{
    return ns ? formatLatency(*ns) : "–";
}

std::string formatSpeedup(const std::optional<gate::Interval> &speedup)
{
    return speedup ? formatSpeedup(*speedup) : "–";
}

nlohmann::json jsonOf(const gate::Interval &interval)
{
    return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

nlohmann::json jsonOf(const std::optional<gate::Interval> &interval)
{
    return interval ? jsonOf(*interval) : nlohmann::json();
}

nlohmann::json rederivedJson(const lineage::Lineage &lineage)
{
    const lineage::RederivedCount count = lineage::countRederived(lineage);
    return {{"transitions", count.transitions}, {"recorded", count.recorded}, {"faster", count.faster}};
}

nlohmann::json transitionsJson(const lineage::Lineage &lineage)
{
    nlohmann::json list = nlohmann::json::array();
    for (const lineage::Transition &step : lineage.transitions)
        list.push_back({{"from", step.from},
                        {"to", step.to},
                        {"category", step.category},
                        {"locus", step.locus},
                        {"summary", step.summary},
                        {"card", step.card}});
    return list;
}

} // namespace klineage::cli
