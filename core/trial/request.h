// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidate.h"
#include "core/trial/verdict.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace klineage::gate {

/// Fresh inputs a case, at most.
inline constexpr int mostSeeds = 64;

/// Where a trial may be made. Empty words: anywhere.
struct Place {
    std::string platform; ///< "sm90"
    std::string device;   ///< "NVIDIA H200": where the figures were made that this trial's are put beside
    std::string gate;     ///< a gate of a pool, by its name
    std::string
        together; ///< any word: trials that share it go to one kind of device, that of the first of them
};

/// What to gate. Files are named by path; text wins when it is not empty.
struct GateRequest {
    Place place; ///< for the pool that is asked; a gate does not read it
    std::filesystem::path workloadDirectory;
    std::string candidateText;
    std::string candidateName;                    ///< for messages: "K03.cl"
    std::string parentText;                       ///< empty: not compared with a parent
    std::map<std::string, std::int64_t> tunables; ///< overrides of the defaults
    int seeds = 3;
    /// Of another trial of the workload, in the order in which it lists them: its inputs and drawn shapes again. Inputs that somebody has
    /// seen prove nothing, so such a trial is never recorded. Empty: seeds that nobody knows.
    std::vector<std::uint64_t> replaySeeds;
    std::string replayOf;           ///< id of that trial; empty exactly when replaySeeds is
    int minRounds = 30;             ///< ABBA rounds
    double targetHalfWidth = 0.002; ///< stop when the 95 % half-width of the speedup is below this
    double profileSeconds = 10;     ///< …or after this long
    double deadlineSeconds = 120;   ///< for the whole trial; a hang is a timeout verdict
    /// Stop once gain, loss or neither against the parent is certain, whatever looking again and again costs (settled()); one seed beyond 256 MB.
    bool quick = false;
    bool withReference = true;
    bool counters = false; ///< after a correct verdict, read hardware counters and PC samples too
    bool sanitize = false; ///< run the smallest case under compute-sanitizer, where it is installed
    bool energy = false;   ///< read the device's energy counter over a long replay
};

/// Progress of a trial in flight.
struct GateProgress {
    Stage stage = Stage::Compile;
    double fraction = 0; ///< of the stage, 0…1; negative: unknown
    std::string text;    ///< "case odd, seed 2 of 3"
};

using ProgressCallback = std::function<void(const GateProgress &)>;

/// One device the gate can use, as `doctor` and the status bar show it.
struct DeviceInfo {
    kernel::DeviceKind kind = kernel::DeviceKind::OpenCl;
    bool available = false;
    std::string name;     ///< "NVIDIA H200", "pthread-…"
    std::string detail;   ///< versions when available; otherwise what is missing and how to get it
    std::string platform; ///< "sm90"; empty: not available, or a gate that does not say it
};

} // namespace klineage::gate
