// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/surfaces/device.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>

namespace klineage::kernel {

namespace {

bool isOpenClPlatform(std::string_view platform)
{
    return platform.starts_with("pocl") || platform.starts_with("opencl-");
}

bool isCudaPlatform(std::string_view platform)
{
    return computeCapability(platform).has_value();
}

/// With "a" from 9.0 on: wgmma, setmaxnreg and their kin.
std::string cudaTarget(std::string_view platform)
{
    const int capability = computeCapability(platform).value_or(90);
    return "sm_" + std::to_string(capability) + (capability >= 90 ? "a" : "");
}

constexpr std::array<DeviceTraits, 2> devices{{
    {
        .kind = DeviceKind::OpenCl,
        .word = "opencl",
        .name = "OpenCL",
        .warpSize = 1,
        .unitsFact = "compute_units",
        .usualBlock = 64,
        .isPlatform = isOpenClPlatform,
        .target = [](std::string_view) { return std::string(); },
        .isHost = true,
        .tensorMaps = false,
        .launchAttributes = false,
        .localArguments = true,
        .mostBlocks = 0,
        .counters = false,
        .sanitizer = false,
        .disassembles = false,
        .replaysRuns = false,
        .helperKernels = false,
        .oracle = false,
        .occupancy = false,
        .linksHere = true,
        .howToGet = "Install pocl-opencl-icd to use this machine's CPU.",
    },
    {
        .kind = DeviceKind::Cuda,
        .word = "cuda",
        .name = "CUDA",
        .warpSize = 32,
        .unitsFact = "sm_count",
        .usualBlock = 256,
        .isPlatform = isCudaPlatform,
        .target = cudaTarget,
        .isHost = false,
        .tensorMaps = true,
        .launchAttributes = true,
        .localArguments = false,
        .mostBlocks = 65535,
        .counters = true,
        .sanitizer = true,
        .disassembles = true,
        .replaysRuns = true,
        .helperKernels = true,
        .oracle = true,
        .occupancy = true,
        .linksHere = false,
        .howToGet =
            "Gate it where the device is: start klineage-gate through a launcher such as `ssh host`, or run "
            "`klineage-gate batch in.jsonl --out out.jsonl` there and import the trials.",
    },
}};

} // namespace

std::span<const DeviceTraits> deviceTable()
{
    return devices;
}

const DeviceTraits &traitsOf(DeviceKind kind)
{
    const auto &traits = devices.at(static_cast<std::size_t>(kind));
    assert(traits.kind == kind);
    return traits;
}

DeviceKind deviceThat(bool DeviceTraits::*has)
{
    const auto found = std::find_if(devices.begin(), devices.end(),
                                    [has](const DeviceTraits &traits) { return traits.*has; });
    assert(found != devices.end());
    return found->kind;
}

std::optional<DeviceKind> deviceOfPlatform(std::string_view platform)
{
    const auto found = std::find_if(devices.begin(), devices.end(), [platform](const DeviceTraits &traits) {
        return traits.isPlatform(platform);
    });
    return found == devices.end() ? std::nullopt : std::optional(found->kind);
}

std::optional<int> computeCapability(std::string_view platform)
{
    if (!platform.starts_with("sm"))
        return std::nullopt;
    platform.remove_prefix(platform.starts_with("sm_") ? 3 : 2);
    int number = 0;
    const char *const last = platform.data() + platform.size();
    const auto [end, problem] = std::from_chars(platform.data(), last, number);
    const bool ends = end == last || (end + 1 == last && (*end == 'a' || *end == 'f'));
    return problem == std::errc() && ends && number >= 10 && number <= 9999 ? std::optional(number)
                                                                            : std::nullopt;
}

const char *toString(DeviceKind kind)
{
    return traitsOf(kind).word;
}

std::optional<DeviceKind> deviceFromString(std::string_view word)
{
    for (const DeviceTraits &traits : devices) {
        if (word == traits.word)
            return traits.kind;
    }
    return std::nullopt;
}

std::vector<std::pair<std::string, DeviceKind>> deviceWords()
{
    std::vector<std::pair<std::string, DeviceKind>> words;
    for (const DeviceTraits &traits : devices)
        words.emplace_back(traits.word, traits.kind);
    return words;
}

} // namespace klineage::kernel
