// SPDX-License-Identifier: GPL-3.0-or-later
//
// Not every CUDA toolkit ships nvml.h, so the few entry points that are used are declared here. Their ABI is stable (NVML API
// reference, "Device Queries").
#include "core/device/cuda/nvml.h"

#include "core/device/cuda/library.h"

#include <cstdio>

namespace klineage::gate::cuda {

namespace {

using Device = void *;
constexpr int success = 0;
constexpr int clockSm = 1;
constexpr int clockMemory = 2;
constexpr int temperatureGpu = 0;

struct Nvml {
    int (*init)() = nullptr;
    int (*deviceByPciBusId)(const char *, Device *) = nullptr;
    int (*clockInfo)(Device, int, unsigned *) = nullptr;
    int (*temperature)(Device, int, unsigned *) = nullptr;
    int (*powerUsage)(Device, unsigned *) = nullptr; ///< milliwatts
    int (*throttleReasons)(Device, unsigned long long *) = nullptr;
    int (*driverVersion)(char *, unsigned) = nullptr;
    int (*totalEnergy)(Device, unsigned long long *) = nullptr; ///< millijoules; from Volta on
    bool ready = false;

    Nvml()
    {
        const auto library = Library::open({"libnvidia-ml.so.1"}, "the NVIDIA driver");
        ready = library && library->resolve(init, "nvmlInit_v2")
                && library->resolve(deviceByPciBusId, "nvmlDeviceGetHandleByPciBusId_v2")
                && library->resolve(clockInfo, "nvmlDeviceGetClockInfo")
                && library->resolve(temperature, "nvmlDeviceGetTemperature")
                && library->resolve(powerUsage, "nvmlDeviceGetPowerUsage")
                && library->resolve(throttleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons")
                && library->resolve(driverVersion, "nvmlSystemGetDriverVersion")
                && library->resolve(totalEnergy, "nvmlDeviceGetTotalEnergyConsumption") && init() == success;
    }
};

} // namespace

namespace {

const Nvml &loaded()
{
    static const Nvml nvml;
    return nvml;
}

} // namespace

std::optional<double> nvmlEnergyJoules(const std::string &pciBusId)
{
    const Nvml &nvml = loaded();
    Device device = nullptr;
    unsigned long long millijoules = 0;
    if (!nvml.ready || nvml.deviceByPciBusId(pciBusId.c_str(), &device) != success
        || nvml.totalEnergy(device, &millijoules) != success)
        return std::nullopt;
    return 1e-3 * static_cast<double>(millijoules);
}

std::map<std::string, std::string> nvmlFacts(const std::string &pciBusId)
{
    const Nvml &nvml = loaded();
    Device device = nullptr;
    if (!nvml.ready || nvml.deviceByPciBusId(pciBusId.c_str(), &device) != success)
        return {};
    std::map<std::string, std::string> facts;
    unsigned value = 0;
    if (nvml.clockInfo(device, clockSm, &value) == success)
        facts["sm_clock_mhz"] = std::to_string(value);
    if (nvml.clockInfo(device, clockMemory, &value) == success)
        facts["mem_clock_mhz"] = std::to_string(value);
    if (nvml.temperature(device, temperatureGpu, &value) == success)
        facts["temperature_c"] = std::to_string(value);
    if (nvml.powerUsage(device, &value) == success)
        facts["power_w"] = std::to_string((value + 500) / 1000);
    unsigned long long reasons = 0;
    if (nvml.throttleReasons(device, &reasons) == success) {
        char text[32];
        std::snprintf(text, sizeof text, "0x%llx", reasons);
        facts["throttle_reasons"] = text;
    }
    char version[80] = {};
    if (nvml.driverVersion(version, sizeof version) == success)
        facts["driver"] = version;
    return facts;
}

} // namespace klineage::gate::cuda
