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

/// What a kind of device is and has. Code asks for the member that matters to it. The kind itself is asked for where something is of
/// that kind alone, and stands beside what it is about:
///   - opening its backend: device/worker;
///   - what its driver needs of this machine, and which of several devices is meant: gate/session (childisolation, sandbox,
///     workersession, deviceturn);
///   - the gate's own kernels for it and their constants: gate/supervisor/trustedrun, gate/roofline, gate/oracle;
///   - columns of other tables: whose library a reference is (workload/workloadwords.h), whose figures an analysis tool reads
///     (trial/analysis), what a capability of a card stands for (skills/vocabulary).
struct DeviceTraits {
    DeviceKind kind;
    const char *word;      ///< "cuda": of workers, references, lists of devices
    const char *name;      ///< "CUDA", for people
    std::int64_t warpSize; ///< where no device is there to say its own
    const char *unitsFact; ///< the environment's fact that counts what blocks are handed to: "sm_count"
    int usualBlock;        ///< threads of a block where nothing else says how many

    /// Whether a trial's platform is one of this kind's: "sm90", "pocl".
    bool (*isPlatform)(std::string_view platform);
    /// What its compilers are asked for, to run on a platform; for one that is not known, on a usual one.
    std::string (*target)(std::string_view platform);

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
    bool occupancy;    ///< what keeps blocks off its units is known: trial/analysis/launch
    bool linksHere;    ///< its driver starts the system's linker when a program is built

    const char *howToGet; ///< what to do where there is none, a sentence
};

/// Every kind, in the order in which devices are listed.
[[nodiscard]] std::span<const DeviceTraits> deviceTable();
[[nodiscard]] const DeviceTraits &traitsOf(DeviceKind kind);
/// The first that has it: `deviceThat(&DeviceTraits::isHost)`. One has to.
[[nodiscard]] DeviceKind deviceThat(bool DeviceTraits::*has);
/// Whose platform it is; nothing: of none.
[[nodiscard]] std::optional<DeviceKind> deviceOfPlatform(std::string_view platform);
/// 90 of "sm90", "sm_90" and "sm_90a"; nothing for what is no compute capability.
[[nodiscard]] std::optional<int> computeCapability(std::string_view platform);

[[nodiscard]] const char *toString(DeviceKind kind); ///< its word
[[nodiscard]] std::optional<DeviceKind> deviceFromString(std::string_view word);
[[nodiscard]] std::vector<std::pair<std::string, DeviceKind>> deviceWords();

} // namespace klineage::kernel
