// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/workersession.h"

#include <functional>
#include <memory>
#include <vector>

namespace klineage::gate {

/// Workers of a trial besides its own, each of which has run nothing when it comes. They are ended with this. One thread.
class FurtherWorkers
{
public:
    using Start = std::function<WorkerResult<std::unique_ptr<WorkerSession>>()>;

    explicit FurtherWorkers(Start start)
        : m_start(std::move(start))
    {}

    /// Valid until discard().
    [[nodiscard]] WorkerResult<WorkerSession *> add(const std::stop_token &stop,
                                                    const process::Deadline &deadline)
    {
        auto started = m_start();
        if (!started)
            return tl::unexpected(started.error());
        (*started)->beginTrial(stop, deadline);
        return m_workers.emplace_back(std::move(*started)).get();
    }
    void setDeadline(process::Deadline deadline)
    {
        for (const auto &worker : m_workers)
            worker->setDeadline(deadline);
    }
    void discard() { m_workers.clear(); }

private:
    Start m_start;
    std::vector<std::unique_ptr<WorkerSession>> m_workers;
};

} // namespace klineage::gate
