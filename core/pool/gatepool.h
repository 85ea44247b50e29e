// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/pool/gateboard.h"
#include "core/pool/gatelink.h"
#include "core/pool/gatespec.h"
#include "core/trial/request.h"
#include "core/trial/trial.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace klineage::gate {

/// A pool, as it stands.
struct PoolState {
    std::vector<GateState> gates;
    std::size_t waiting = 0;
};

/// The one way to ask for trials: window, command line, agents, experiments and sweeps ask a pool, and it asks its gates, one trial at a
/// time each. A gate is started when it is first needed and kept warm.
///
/// Thread contract: run() may be called from any number of threads; it blocks, and calls progress on the calling thread. Trials are begun
/// in the order in which they were asked for, each on a gate that has what its request's place asks for; the wait, for a gate and for
/// its start, is told as progress, and is not the trial's time. The next ones are told to the gate beforehand, so that it compiles them
/// while it measures. A gate that is lost while a trial runs on it is started anew, and the
/// trial is begun again, there or on another: of its two halves only one has a result.
class GatePool
{
public:
    /// Gates without names may each have any device, and are not asked; one that cannot be started is an error at once.
    explicit GatePool(std::vector<GateSpec> gates = {GateSpec{}});
    /// maker: what stands in for GateClient in tests.
    GatePool(std::vector<GateSpec> gates, BoardOptions options, LinkMaker maker = {});
    ~GatePool(); ///< kills the gates and their workers
    GatePool(const GatePool &) = delete;
    GatePool &operator=(const GatePool &) = delete;

    /// A verdict of any status is a success; an Error means that no gate could run the trial. A stop request ends the wait, or the
    /// trial, at once and returns ErrorCode::Cancelled; the gate stays warm. The trial of a named gate says which ("gate", among the
    /// facts of its environment).
    [[nodiscard]] Result<Trial> run(const GateRequest &request, std::stop_token stop = {},
                                    ProgressCallback progress = {});

    /// A request that is likely to be run soon: a gate that is up may compile its candidate meanwhile. Says nothing, fails silently.
    void prepare(const GateRequest &request);

    [[nodiscard]] PoolState state() const; ///< times are seconds on the pool's own clock
    [[nodiscard]] std::size_t size() const;

private:
    struct Private;
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::gate
