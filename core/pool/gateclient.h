// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/pool/gatelink.h"

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace klineage::gate {

/// Starts `klineage-gate serve` (through an optional launcher prefix such as {"ssh", "host"}) and talks to it.
/// Thread contract: one run() at a time; run() blocks and calls progress on the calling thread.
/// The supervisor is started on first use, kept warm, and replaced when it dies.
class GateClient : public GateLink
{
public:
    explicit GateClient(std::filesystem::path gateProgram, std::vector<std::string> launcher = {});
    explicit GateClient(GateSpec spec);
    ~GateClient() override; ///< kills the supervisor and its workers

    [[nodiscard]] tl::expected<std::vector<DeviceInfo>, GateProblem> start(
        bool asksDevices, const std::stop_token &stop,
        const std::function<void(const std::string &)> &say) override;

    /// A verdict of any status is a success; an Error means the gate itself could not run. A stop request ends
    /// the trial at once and returns ErrorCode::Cancelled; the supervisor stays warm unless it does not answer within ten seconds.
    [[nodiscard]] Result<Trial> run(const GateRequest &request, std::stop_token stop = {},
                                    ProgressCallback progress = {}) override;

    /// A request that is likely to be run soon: the gate may compile its candidate while the next run() is measured. Says nothing and
    /// fails silently; it does nothing before the first run().
    void prepare(const GateRequest &request) override;

    /// The supervisor was started and has not been given up.
    [[nodiscard]] bool isUp() const override;

private:
    struct Private;
    std::unique_ptr<Private> m_d;
};

/// Runs `klineage-gate devices` with a deadline (it may load drivers, so it is never done in the caller's process).
[[nodiscard]] Result<std::vector<DeviceInfo>> queryDevices(const std::filesystem::path &gateProgram,
                                                           std::stop_token stop = {});
[[nodiscard]] tl::expected<std::vector<DeviceInfo>, GateProblem> queryDevices(const GateSpec &spec,
                                                                              std::stop_token stop = {});

} // namespace klineage::gate
