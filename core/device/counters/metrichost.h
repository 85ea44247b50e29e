// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/device/counters/metricsets.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace klineage::gate::counters {

/// The counters of one set that a chip has, and how to schedule them.
struct SetConfiguration {
    std::vector<const CounterMetric *> metrics;
    std::vector<const char *> chipMetrics; ///< of the same order
    std::vector<std::uint8_t> image;
    std::size_t passes = 0;
};

/// CUPTI's knowledge of one chip's counters. Needs libcupti, but neither a device nor a driver.
class MetricHost
{
public:
    /// chip: "GH100". availability: what the device at hand allows (from the driver); empty: all of the chip's.
    [[nodiscard]] static Result<MetricHost> open(const std::string &chip,
                                                 std::span<const std::uint8_t> availability = {});
    MetricHost(MetricHost &&) noexcept;
    MetricHost &operator=(MetricHost &&) noexcept;
    ~MetricHost();

    [[nodiscard]] bool has(const char *chipMetric) const;
    [[nodiscard]] Result<SetConfiguration> configure(const MetricSet &set) const;
    /// Values of one range of decoded counter data, in the order of the configuration.
    [[nodiscard]] Result<std::vector<double>> evaluate(const SetConfiguration &configuration,
                                                       std::span<const std::uint8_t> counterData,
                                                       std::size_t range) const;

private:
    struct Private;
    explicit MetricHost(std::unique_ptr<Private> d);
    std::unique_ptr<Private> m_d;
};

/// CUPTI's version: 130000 for 13.0.
[[nodiscard]] Result<std::uint32_t> cuptiVersion();

} // namespace klineage::gate::counters
