// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/cuda/nvml.h"

#include "core/gate/cuda/library.h"

#if KLINEAGE_HAVE_NVML
#include <nvml.h>
#endif

#include <cstdio>

namespace klineage::gate::cuda {

#if KLINEAGE_HAVE_NVML

namespace {

struct Nvml {
    nvmlReturn_t (*init)() = nullptr;
    nvmlReturn_t (*deviceByPciBusId)(const char *, nvmlDevice_t *) = nullptr;
    nvmlReturn_t (*clockInfo)(nvmlDevice_t, nvmlClockType_t, unsigned *) = nullptr;
    nvmlReturn_t (*temperature)(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned *) = nullptr;
    nvmlReturn_t (*powerUsage)(nvmlDevice_t, unsigned *) = nullptr;
    nvmlReturn_t (*throttleReasons)(nvmlDevice_t, unsigned long long *) = nullptr;
    nvmlReturn_t (*driverVersion)(char *, unsigned) = nullptr;
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
                && library->resolve(driverVersion, "nvmlSystemGetDriverVersion") && init() == NVML_SUCCESS;
    }
};

} // namespace

std::map<std::string, std::string> nvmlFacts(const std::string &pciBusId)
{
    static const Nvml nvml;
    nvmlDevice_t device{};
    if (!nvml.ready || nvml.deviceByPciBusId(pciBusId.c_str(), &device) != NVML_SUCCESS)
        return {};
    std::map<std::string, std::string> facts;
    unsigned value = 0;
    if (nvml.clockInfo(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS)
        facts["sm_clock_mhz"] = std::to_string(value);
    if (nvml.clockInfo(device, NVML_CLOCK_MEM, &value) == NVML_SUCCESS)
        facts["mem_clock_mhz"] = std::to_string(value);
    if (nvml.temperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS)
        facts["temperature_c"] = std::to_string(value);
    if (nvml.powerUsage(device, &value) == NVML_SUCCESS)
        facts["power_w"] = std::to_string((value + 500) / 1000);
    unsigned long long reasons = 0;
    if (nvml.throttleReasons(device, &reasons) == NVML_SUCCESS) {
        char text[32];
        std::snprintf(text, sizeof text, "0x%llx", reasons);
        facts["throttle_reasons"] = text;
    }
    char version[80] = {};
    if (nvml.driverVersion(version, sizeof version) == NVML_SUCCESS)
        facts["driver"] = version;
    return facts;
}

#else

std::map<std::string, std::string> nvmlFacts(const std::string &)
{
    return {};
}

#endif

} // namespace klineage::gate::cuda
