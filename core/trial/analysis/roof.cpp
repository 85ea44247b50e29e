// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/roof.h"

#include "core/base/numbertext.h"
#include "core/trial/analysis/floor.h"

namespace klineage::gate {

namespace {

double numberOf(const Environment &environment, const std::string &name)
{
    const auto fact = environment.facts.find(name);
    const double value = fact == environment.facts.end() ? 0 : numberIn(fact->second);
    return value > 0 && value < 1e30 ? value : 0;
}

/// The rate's name for a precision.
std::string rateName(const std::string &precision)
{
    return precision == "half" ? "bf16" : precision;
}

} // namespace

void recordRoof(const Ceilings &ceilings, double footprintBytes, const std::string &precision,
                Environment &environment)
{
    auto &facts = environment.facts;
    facts["roofline_measured"] = ceilings.time;
    if (const BandwidthCeiling *bandwidth = ceilings.nearest(footprintBytes)) {
        facts["roofline_bandwidth"] = fixedText(bandwidth->copy, 0);
        facts["roofline_footprint"] = fixedText(bandwidth->footprintBytes, 0);
    }
    if (!precision.empty())
        facts["roofline_precision"] = precision;
    for (const RateCeiling &rate : ceilings.rates)
        facts["roofline_flops_" + rate.name] = fixedText(rate.perSecond, 0);
    if (ceilings.launchNs > 0)
        facts["roofline_launch_ns"] = fixedText(ceilings.launchNs, 0);
}

std::optional<Roof> recordedRoof(const Environment &environment)
{
    Roof roof;
    roof.bandwidth = numberOf(environment, "roofline_bandwidth");
    if (const auto precision = environment.facts.find("roofline_precision");
        precision != environment.facts.end()) {
        roof.peakName = rateName(precision->second);
        roof.peak = numberOf(environment, "roofline_flops_" + roof.peakName);
    }
    roof.fp32 = numberOf(environment, "roofline_flops_fp32");
    roof.launchNs = numberOf(environment, "roofline_launch_ns");
    if (roof.bandwidth <= 0 && roof.peak <= 0)
        return {};
    return roof;
}

} // namespace klineage::gate
