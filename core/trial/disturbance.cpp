// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/disturbance.h"

#include <cstdlib>
#include <optional>

namespace klineage::gate {

namespace {

constexpr double busyLoad = 1.5; // of a thread

// NVML's nvmlClocksThrottleReason…: slowdown by hardware, heat by software and by hardware, power brake.
constexpr unsigned long long heldReasons = 0x08 | 0x20 | 0x40 | 0x80;

std::optional<double> numberIn(const std::string &text)
{
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end == text.c_str() ? std::nullopt : std::optional(value);
}

std::optional<double> fact(const Trial &trial, const char *name)
{
    const auto found = trial.environment.facts.find(name);
    return found == trial.environment.facts.end() ? std::nullopt : numberIn(found->second);
}

std::optional<double> evidence(const Trial &trial, std::string_view name)
{
    for (const Evidence &item : trial.verdict.evidence) {
        if (item.name == name)
            return numberIn(item.value);
    }
    return std::nullopt;
}

} // namespace

std::vector<Disturbance> disturbancesOf(const Trial &trial)
{
    std::vector<Disturbance> found;
    if (trial.latencyNs.value <= 0)
        return found;
    const auto load = fact(trial, "load_1min");
    const auto threads = fact(trial, "cpu_threads");
    if (trial.surface.device().isHost && load && threads && *threads > 0 && *load >= busyLoad * *threads)
        found.push_back({Disturbance::Kind::Load, *load, *threads});
    const auto reasons = trial.environment.facts.find("throttle_reasons");
    if (reasons != trial.environment.facts.end()
        && (std::strtoull(reasons->second.c_str(), nullptr, 16) & heldReasons) != 0)
        found.push_back({Disturbance::Kind::Held, 0, 0});
    const auto discarded = evidence(trial, "discarded_rounds");
    const auto kept = evidence(trial, "rounds");
    if (discarded && kept && *kept > 0 && *discarded >= *kept)
        found.push_back({Disturbance::Kind::Unsteady, *discarded, *kept});
    return found;
}

} // namespace klineage::gate
