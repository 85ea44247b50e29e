// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"
#include "core/device/opencl/loader.h"

namespace klineage::gate::opencl {

/// The device that is used, with what does not change about it.
struct Device {
    const Api *api = nullptr;
    cl_platform_id platform = nullptr;
    cl_device_id id = nullptr;
    bool isCpu = false;
    std::string platformScope; ///< "pocl", or "opencl-<platform>"
    std::string name;
    std::string platformName;
    std::string platformVersion;
    std::string driverVersion;
    std::int64_t computeUnits = 1;
    std::int64_t vectorWidth = 1;
    std::size_t localBytes = 0;
    std::size_t maxWorkGroup = 1;
    std::array<std::size_t, 3> maxWorkItems{1, 1, 1};
    std::size_t cacheBytes = 0;
};

/// A CPU device when there is one (PoCL first), otherwise the first device.
[[nodiscard]] Result<Device> findDevice();
[[nodiscard]] Environment environmentOf(const Device &device);
/// "pocl 3.1 (LLVM 15.0.6)", from the platform's version string.
[[nodiscard]] std::string compilerOf(const Device &device);

} // namespace klineage::gate::opencl
