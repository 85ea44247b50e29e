// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <optional>
#include <string>

namespace klineage::gate::cuda {

/// Clocks, temperature, power and throttle reasons of the device with this PCI bus id, as NVML tells them now:
/// sm_clock_mhz, mem_clock_mhz, temperature_c, power_w, throttle_reasons (hex mask), driver. Empty without NVML.
[[nodiscard]] std::map<std::string, std::string> nvmlFacts(const std::string &pciBusId);

/// The device's energy since the driver was loaded, in joules; nothing when it has no such counter.
[[nodiscard]] std::optional<double> nvmlEnergyJoules(const std::string &pciBusId);

} // namespace klineage::gate::cuda
