// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/trial/request.h"
#include "core/trial/trial.h"

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace klineage::gate {

/// One gate of a pool.
struct GateSpec {
    std::vector<std::string> launcher; ///< before the program, such as {"ssh", "host"}; empty: this machine
    std::filesystem::path program;     ///< empty: found when the gate is first needed (findGateProgram)
};

/// The one way to ask for trials: window, command line, agents, experiments and sweeps ask a pool, and it asks its gates, one trial at a
/// time each. A gate is started when it is first needed and kept warm.
///
/// Thread contract: run() may be called from any number of threads; it blocks, and calls progress on the calling thread. Trials are begun
/// in the order in which they were asked for; the wait is told as progress, and is not the trial's time.
/// A gate that is lost while a trial runs on it is started anew, and the trial is begun again, once.
class GatePool
{
public:
    explicit GatePool(std::vector<GateSpec> gates = {GateSpec{}});
    ~GatePool(); ///< kills the gates and their workers
    GatePool(const GatePool &) = delete;
    GatePool &operator=(const GatePool &) = delete;

    /// A verdict of any status is a success; an Error means that no gate could run the trial. A stop request ends the wait, or the
    /// trial, at once and returns ErrorCode::Cancelled; the gate stays warm.
    [[nodiscard]] Result<Trial> run(const GateRequest &request, std::stop_token stop = {},
                                    ProgressCallback progress = {});

    /// A request that is likely to be run soon: a gate that is up may compile its candidate meanwhile. Says nothing, fails silently.
    void prepare(const GateRequest &request);

private:
    struct Private;
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::gate
