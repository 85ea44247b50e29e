// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/device.h"

#include "core/device/hostfacts.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <unistd.h>

namespace klineage::gate::opencl {

namespace {

template <typename Query, typename Object, typename Name>
std::string textOf(Query query, Object object, Name name)
{
    std::size_t bytes = 0;
    if (query(object, name, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0)
        return {};
    std::string text(bytes, '\0');
    if (query(object, name, bytes, text.data(), nullptr) != CL_SUCCESS)
        return {};
    text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
    return text;
}

template <typename T>
T numberOf(const Api &api, cl_device_id device, cl_device_info name)
{
    T value{};
    api.clGetDeviceInfo(device, name, sizeof value, &value, nullptr);
    return value;
}

bool isPocl(const std::string &platformName)
{
    return platformName.find("Portable Computing Language") != std::string::npos;
}

/// "NVIDIA CUDA" -> "opencl-nvidia-cuda".
std::string scopeOf(const std::string &platformName)
{
    if (isPocl(platformName))
        return "pocl";
    std::string scope = "opencl-";
    for (const char c : platformName) {
        if (std::isalnum(static_cast<unsigned char>(c)))
            scope.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
        else if (scope.back() != '-')
            scope.push_back('-');
    }
    return scope;
}

std::size_t lastLevelCache(const Api &api, cl_device_id device, bool isCpu)
{
    auto bytes = static_cast<std::size_t>(numberOf<cl_ulong>(api, device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE));
    if (isCpu) {
        for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
            bytes = std::max(bytes, static_cast<std::size_t>(std::max(0L, ::sysconf(level))));
    }
    return bytes;
}

Device inspect(const Api &api, cl_platform_id platform, cl_device_id id)
{
    Device device;
    device.api = &api;
    device.platform = platform;
    device.id = id;
    device.isCpu = (numberOf<cl_device_type>(api, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    device.name = textOf(api.clGetDeviceInfo, id, CL_DEVICE_NAME);
    device.platformName = textOf(api.clGetPlatformInfo, platform, CL_PLATFORM_NAME);
    device.platformVersion = textOf(api.clGetPlatformInfo, platform, CL_PLATFORM_VERSION);
    device.driverVersion = textOf(api.clGetDeviceInfo, id, CL_DRIVER_VERSION);
    device.platformScope = scopeOf(device.platformName);
    device.computeUnits = numberOf<cl_uint>(api, id, CL_DEVICE_MAX_COMPUTE_UNITS);
    device.vectorWidth =
        std::max<std::int64_t>(1, numberOf<cl_uint>(api, id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
    device.localBytes = static_cast<std::size_t>(numberOf<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE));
    device.maxWorkGroup = numberOf<std::size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    std::array<std::size_t, 16> sizes{};
    api.clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes.data(), nullptr);
    std::copy_n(sizes.begin(), 3, device.maxWorkItems.begin());
    device.cacheBytes = lastLevelCache(api, id, device.isCpu);
    return device;
}

} // namespace

Result<Device> findDevice()
{
    const auto api = loadApi();
    if (!api)
        return tl::unexpected(api.error());
    cl_uint platformCount = 0;
    (*api)->clGetPlatformIDs(0, nullptr, &platformCount);
    std::vector<cl_platform_id> platforms(platformCount);
    if (platformCount > 0)
        (*api)->clGetPlatformIDs(platformCount, platforms.data(), nullptr);
    std::vector<Device> devices;
    for (const cl_platform_id platform : platforms) {
        cl_uint count = 0;
        if ((*api)->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS
            || count == 0)
            continue;
        std::vector<cl_device_id> ids(count);
        (*api)->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
        for (const cl_device_id id : ids)
            devices.push_back(inspect(**api, platform, id));
    }
    if (devices.empty())
        return fail(
            ErrorCode::Unavailable,
            "Cannot find an OpenCL device: no platform offers one. Install pocl-opencl-icd to use the CPU.");
    const auto rank = [](const Device &d) { return (d.isCpu ? 2 : 0) + (isPocl(d.platformName) ? 1 : 0); };
    return *std::max_element(devices.begin(), devices.end(),
                             [&](const Device &a, const Device &b) { return rank(a) < rank(b); });
}

std::string compilerOf(const Device &device)
{
    if (!isPocl(device.platformName))
        return device.platformName + " " + device.driverVersion;
    std::smatch version;
    std::smatch llvm;
    std::string text = "pocl";
    if (std::regex_search(device.platformVersion, version,
                          std::regex(R"(PoCL v?([0-9.]+))", std::regex::icase)))
        text += " " + version[1].str();
    else
        text += " " + device.driverVersion;
    if (std::regex_search(device.platformVersion, llvm, std::regex(R"(LLVM ([0-9.]+))")))
        text += " (LLVM " + llvm[1].str() + ")";
    return text;
}

Environment environmentOf(const Device &device)
{
    Environment environment;
    environment.platform = device.platformScope;
    environment.device = device.name;
    environment.facts = hostFacts();
    environment.facts["compiler"] = compilerOf(device);
    environment.facts["opencl_platform"] = device.platformName;
    environment.facts["driver"] = device.driverVersion;
    environment.facts["compute_units"] = std::to_string(device.computeUnits);
    environment.facts["cache_bytes"] = std::to_string(device.cacheBytes);
    environment.facts["memory_bytes"] =
        std::to_string(numberOf<cl_ulong>(*device.api, device.id, CL_DEVICE_GLOBAL_MEM_SIZE));
    environment.facts["timing"] = "events";
    return environment;
}

} // namespace klineage::gate::opencl
