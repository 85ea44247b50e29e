// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/surfaces/device.h"

#include <array>
#include <cassert>

namespace klineage::kernel {

namespace {

constexpr std::array<DeviceTraits, 2> devices{{
    {
        .kind = DeviceKind::OpenCl,
        .word = "opencl",
        .name = "OpenCL",
        .warpSize = 1,
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
        .howToGet = "Install pocl-opencl-icd to use this machine's CPU.",
    },
    {
        .kind = DeviceKind::Cuda,
        .word = "cuda",
        .name = "CUDA",
        .warpSize = 32,
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
