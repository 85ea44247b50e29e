// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace klineage::kernel {

/// Who loads and launches. A worker has one; several languages may run on it.
enum class DeviceKind { OpenCl, Cuda };

/// What a kind of device is and has. Code asks for the member that matters to it; the kind itself is only for what is of that
/// kind alone: opening its backend, the files of its driver, the gate's own kernels for it.
struct DeviceTraits {
    DeviceKind kind;
    const char *word;      ///< "cuda": of workers, references, lists of devices
    const char *name;      ///< "CUDA", for people
    std::int64_t warpSize; ///< where no device is there to say its own

    /// It is the processor that the gate itself runs on: what the gate does meanwhile disturbs what is timed, a kernel is a
    /// function in the worker's process, and could leave something there or change its clock. Each candidate gets a fresh worker.
    bool isHost;

    bool tensorMaps;         ///< [[tensormap]]
    bool launchAttributes;   ///< 'shared', 'cluster', 'cooperative' and 'pdl' of a [[launch]]
    bool localArguments;     ///< 'local BYTES' in 'args' of a [[launch]]
    std::int64_t mostBlocks; ///< in y and z of a grid; 0: no limit of its own

    bool counters;     ///< hardware counters and samples of the program counter
    bool sanitizer;    ///< a tool that watches memory accesses and races
    bool disassembles; ///< its binaries can be shown as machine code, with the lines that they come from
    bool replaysRuns;  ///< a run is recorded once and replayed as a whole when it is timed
    bool
        helperKernels; ///< the worker refills buffers with kernels of the gate's own, which have to be installed
    bool oracle;       ///< large expected outputs can be computed on it

    const char *howToGet; ///< what to do where there is none, a sentence
};

/// Every kind, in the order in which devices are listed.
[[nodiscard]] std::span<const DeviceTraits> deviceTable();
[[nodiscard]] const DeviceTraits &traitsOf(DeviceKind kind);

[[nodiscard]] const char *toString(DeviceKind kind); ///< its word
[[nodiscard]] std::optional<DeviceKind> deviceFromString(std::string_view word);
[[nodiscard]] std::vector<std::pair<std::string, DeviceKind>> deviceWords();

} // namespace klineage::kernel
