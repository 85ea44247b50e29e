// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/floor.h"

#include "core/kernel/surfaces/device.h"

#include <algorithm>

namespace klineage::gate {

namespace {

constexpr double gpuMargin = 0.05;
constexpr double cpuMargin = 0.10;
constexpr double splitProducts = 3; // hi·hi + hi·lo + lo·hi

struct Peak {
    double perSecond = 0;
    std::string name;
    double spread = 0;
};

Peak plain(const RateCeiling &rate)
{
    return {rate.limit, rate.name + " (" + rate.method + ")", rate.spread};
}

/// Nothing when the fastest instructions for it were not measured.
std::optional<Peak> peakOf(const std::string &precision, const Ceilings &ceilings)
{
    std::vector<const char *> direct;
    std::vector<const char *> split;
    if (precision == "fp64") {
        direct = {"fp64"};
    } else if (precision == "fp32") {
        direct = {"fp32"};
        split = {"tf32", "bf16"};
    } else if (precision == "tf32") {
        direct = {"fp32", "tf32"};
        split = {"bf16"};
    } else if (precision == "half") {
        direct = {"fp32", "tf32", "bf16"};
    } else if (precision == "fp8") {
        direct = {"bf16", "fp8"};
    }
    if (direct.empty() || !ceilings.rate(direct.back()))
        return {};
    Peak best;
    const auto consider = [&](const char *name, double products) {
        const RateCeiling *rate = ceilings.rate(name);
        if (!rate)
            return true;
        Peak peak = plain(*rate);
        if (products > 1) {
            peak.perSecond /= products;
            peak.name = "three products in " + peak.name;
        }
        if (peak.perSecond > best.perSecond)
            best = peak;
        return rate->isBound;
    };
    bool bounded = true;
    for (const char *name : direct)
        bounded = consider(name, 1) && bounded;
    for (const char *name : split)
        bounded = consider(name, splitProducts) && bounded;
    return bounded ? std::optional<Peak>(best) : std::nullopt;
}

void note(Floor &floor, const std::string &text)
{
    floor.missing += (floor.missing.empty() ? "" : "; ") + text;
}

} // namespace

Floor rooflineFloor(const Demand &demand, const Ceilings &ceilings)
{
    Floor floor;
    const auto platform = ceilings.fingerprint.find("platform");
    const auto device =
        platform == ceilings.fingerprint.end() ? std::nullopt : kernel::deviceOfPlatform(platform->second);
    floor.margin = device && !kernel::traitsOf(*device).isHost ? gpuMargin : cpuMargin;
    if (demand.bytes > 0) {
        if (const BandwidthCeiling *bound = ceilings.boundFor(demand.footprintBytes)) {
            floor.bandwidth = bound->best();
            floor.memoryNs = demand.bytes / floor.bandwidth * 1e9;
            floor.margin = std::max(floor.margin, bound->spread);
        } else {
            note(floor, "no bandwidth was measured for so small a footprint");
        }
    } else {
        note(floor, "the workload does not say its bytes");
    }
    if (demand.flops > 0) {
        if (const auto peak = peakOf(demand.precision, ceilings)) {
            floor.peak = peak->perSecond;
            floor.peakName = peak->name;
            floor.computeNs = demand.flops / peak->perSecond * 1e9;
            floor.margin = std::max(floor.margin, peak->spread);
        } else {
            note(floor, "no rate bounds this arithmetic on this device");
        }
    } else {
        note(floor, "the workload does not say its operations");
    }
    floor.ns = std::max(floor.memoryNs, floor.computeNs);
    return floor;
}

bool isBelow(double ns, const Floor &floor)
{
    return floor.ns > 0 && ns > 0 && ns < floor.ns * (1 - floor.margin);
}

} // namespace klineage::gate
