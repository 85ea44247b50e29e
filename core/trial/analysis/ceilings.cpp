// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/ceilings.h"

#include "core/files/jsonreader.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

using files::JsonPath;
using files::JsonReader;

using nlohmann::json;

namespace {

constexpr std::size_t maxEntries = 64;
constexpr std::size_t maxFacts = 64;
/// Raised when figures of an earlier way of measuring must not be kept.
constexpr const char *methodRevision = "2";

BandwidthCeiling readBandwidth(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    BandwidthCeiling bandwidth;
    bandwidth.footprintBytes = reader.number("footprint_bytes");
    bandwidth.copy = reader.number("copy");
    bandwidth.read = reader.number("read");
    bandwidth.write = reader.number("write");
    bandwidth.spread = reader.number("spread");
    if (bandwidth.footprintBytes <= 0 || bandwidth.best() <= 0)
        reader.refuse("copy", "expected positive figures");
    reader.finish();
    return bandwidth;
}

RateCeiling readRate(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    RateCeiling rate;
    rate.name = reader.text("name");
    rate.method = reader.text("method");
    rate.perSecond = reader.number("per_second");
    rate.limit = reader.number("limit");
    rate.spread = reader.number("spread");
    rate.isBound = reader.boolean("is_bound");
    if (rate.perSecond <= 0 || rate.limit < rate.perSecond)
        reader.refuse("limit", "expected a positive rate and a limit that is not below it");
    reader.finish();
    return rate;
}

Ceilings readCeilings(const json &value)
{
    JsonReader reader(value, {});
    Ceilings ceilings;
    if (const json *facts = reader.optionalObject("fingerprint", maxFacts)) {
        for (const auto &[name, fact] : facts->items())
            ceilings.fingerprint[name] = files::readText(fact, {"fingerprint", name});
    }
    ceilings.time = reader.text("time");
    ceilings.gateVersion = reader.text("gate_version");
    ceilings.seconds = reader.number("seconds");
    ceilings.launchNs = reader.number("launch_ns");
    const auto each = [&](const std::string &key, auto &&read) {
        if (const json *list = reader.optionalArray(key, maxEntries)) {
            for (std::size_t i = 0; i < list->size(); ++i)
                read((*list)[i], JsonPath{key, std::to_string(i)});
        }
    };
    each("bandwidths", [&](const json &entry, const JsonPath &path) {
        ceilings.bandwidths.push_back(readBandwidth(entry, path));
    });
    each("rates",
         [&](const json &entry, const JsonPath &path) { ceilings.rates.push_back(readRate(entry, path)); });
    reader.finish();
    std::sort(ceilings.bandwidths.begin(), ceilings.bandwidths.end(),
              [](const auto &a, const auto &b) { return a.footprintBytes < b.footprintBytes; });
    return ceilings;
}

} // namespace

double BandwidthCeiling::best() const
{
    return std::max({copy, read, write});
}

const RateCeiling *Ceilings::rate(std::string_view name) const
{
    const auto found =
        std::find_if(rates.begin(), rates.end(), [&](const RateCeiling &rate) { return rate.name == name; });
    return found == rates.end() ? nullptr : &*found;
}

const BandwidthCeiling *Ceilings::boundFor(double footprintBytes) const
{
    const BandwidthCeiling *bound = nullptr;
    for (const BandwidthCeiling &bandwidth : bandwidths) {
        // Of larger footprints only a faster one is of interest: it shows that the smaller one's figure was too low.
        if (bandwidth.footprintBytes <= footprintBytes || (bound && bandwidth.best() > bound->best()))
            bound = &bandwidth;
    }
    return bound;
}

const BandwidthCeiling *Ceilings::nearest(double footprintBytes) const
{
    const auto distance = [&](const BandwidthCeiling &b) {
        return std::abs(std::log(b.footprintBytes / std::max(footprintBytes, 1.0)));
    };
    const auto found =
        std::min_element(bandwidths.begin(), bandwidths.end(),
                         [&](const auto &a, const auto &b) { return distance(a) < distance(b); });
    return found == bandwidths.end() ? nullptr : &*found;
}

Fingerprint fingerprintOf(const Environment &environment)
{
    Fingerprint fingerprint = {
        {"platform", environment.platform}, {"device", environment.device}, {"method", methodRevision}};
    for (const char *name : {"driver", "cuda_driver", "sm_count", "l2_bytes", "memory_bytes", "power_limit_w",
                             "cpu", "cpu_threads", "compute_units", "cache_bytes", "opencl_platform"}) {
        if (const auto fact = environment.facts.find(name); fact != environment.facts.end())
            fingerprint[name] = fact->second;
    }
    // The OpenCL compiler is a part of the device; NVRTC's version is known only after a compilation, and changes no ceiling.
    if (const auto fact = environment.facts.find("compiler");
        fact != environment.facts.end() && environment.facts.contains("opencl_platform"))
        fingerprint["compiler"] = fact->second;
    return fingerprint;
}

Ceilings mergeCeilings(const Ceilings &earlier, const Ceilings &later)
{
    Ceilings merged = later;
    if (earlier.launchNs > 0 && (merged.launchNs <= 0 || earlier.launchNs < merged.launchNs))
        merged.launchNs = earlier.launchNs;
    for (const BandwidthCeiling &old : earlier.bandwidths) {
        const auto same = std::find_if(merged.bandwidths.begin(), merged.bandwidths.end(),
                                       [&](const auto &b) { return b.footprintBytes == old.footprintBytes; });
        if (same == merged.bandwidths.end()) {
            merged.bandwidths.push_back(old);
            continue;
        }
        if (old.copy > same->copy)
            same->spread = old.spread;
        same->copy = std::max(same->copy, old.copy);
        same->read = std::max(same->read, old.read);
        same->write = std::max(same->write, old.write);
    }
    std::sort(merged.bandwidths.begin(), merged.bandwidths.end(),
              [](const auto &a, const auto &b) { return a.footprintBytes < b.footprintBytes; });
    for (const RateCeiling &old : earlier.rates) {
        const auto same = std::find_if(merged.rates.begin(), merged.rates.end(),
                                       [&](const auto &rate) { return rate.name == old.name; });
        if (same == merged.rates.end()) {
            merged.rates.push_back(old);
            continue;
        }
        const double limit = std::max(same->limit, old.limit);
        if (old.perSecond > same->perSecond)
            *same = old;
        same->limit = limit;
    }
    return merged;
}

std::string writeCeilings(const Ceilings &ceilings)
{
    json bandwidths = json::array();
    for (const BandwidthCeiling &b : ceilings.bandwidths)
        bandwidths.push_back({{"footprint_bytes", b.footprintBytes},
                              {"copy", b.copy},
                              {"read", b.read},
                              {"write", b.write},
                              {"spread", b.spread}});
    json rates = json::array();
    for (const RateCeiling &rate : ceilings.rates)
        rates.push_back({{"name", rate.name},
                         {"method", rate.method},
                         {"per_second", rate.perSecond},
                         {"limit", rate.limit},
                         {"spread", rate.spread},
                         {"is_bound", rate.isBound}});
    const json out = {{"fingerprint", ceilings.fingerprint},
                      {"time", ceilings.time},
                      {"gate_version", ceilings.gateVersion},
                      {"seconds", ceilings.seconds},
                      {"launch_ns", ceilings.launchNs},
                      {"bandwidths", bandwidths},
                      {"rates", rates}};
    return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<Ceilings> parseCeilings(std::string_view text, const std::string &where)
{
    return files::parseJsonLine(text, where, [](const json &value) { return readCeilings(value); });
}

} // namespace klineage::gate
