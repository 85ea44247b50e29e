// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/gate/trial.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace klineage::gate {

/// What to gate. Files are named by path; text wins when it is not empty.
struct GateRequest {
    std::filesystem::path workloadDirectory;
    std::string candidateText;
    std::string candidateName;                    ///< for messages: "K03.cl"
    std::string parentText;                       ///< empty: not compared with a parent
    std::map<std::string, std::int64_t> tunables; ///< overrides of the defaults
    int seeds = 3;
    int minRounds = 30;             ///< ABBA rounds
    double targetHalfWidth = 0.002; ///< stop when the 95 % half-width of the speedup is below this
    double profileSeconds = 10;     ///< …or after this long
    double deadlineSeconds = 120;   ///< for the whole trial; a hang is a timeout verdict
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

/// Starts `klineage-gate serve` (through an optional launcher prefix such as {"ssh", "host"}) and talks to it.
/// Thread contract: one run() at a time; run() blocks and calls progress on the calling thread.
/// The supervisor is started on first use, kept warm, and replaced when it dies.
class GateClient
{
public:
    explicit GateClient(std::filesystem::path gateProgram, std::vector<std::string> launcher = {});
    ~GateClient(); ///< kills the supervisor and its workers
    GateClient(const GateClient &) = delete;
    GateClient &operator=(const GateClient &) = delete;

    /// A verdict of any status is a success; an Error means the gate itself could not run. A stop request kills the
    /// trial at once and returns ErrorCode::Cancelled.
    [[nodiscard]] Result<Trial> run(const GateRequest &request, std::stop_token stop = {},
                                    ProgressCallback progress = {});

    /// A request that is likely to be run soon: the gate may compile its candidate while the next run() is measured. Says nothing and
    /// fails silently; it does nothing before the first run().
    void prepare(const GateRequest &request);

private:
    struct Private;
    std::unique_ptr<Private> m_d;
};

/// klineage-gate beside the running program, or on PATH.
[[nodiscard]] Result<std::filesystem::path> findGateProgram();

/// One device the gate can use, as `doctor` and the status bar show it.
struct DeviceInfo {
    kernel::Surface surface = kernel::Surface::OpenCl;
    bool available = false;
    std::string name;   ///< "NVIDIA H200", "pthread-…"
    std::string detail; ///< versions when available; otherwise what is missing and how to get it
};

/// Runs `klineage-gate devices` with a deadline (it may load drivers, so it is never done in the caller's process).
[[nodiscard]] Result<std::vector<DeviceInfo>> queryDevices(const std::filesystem::path &gateProgram,
                                                           std::stop_token stop = {});

} // namespace klineage::gate
