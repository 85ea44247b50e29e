// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/caseinstance.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace klineage::gate {

/// One case with one seed.
struct CheckStep {
    const workload::Case *theCase = nullptr;
    std::uint64_t seed = 0;
    bool timed = false;
    /// Its outputs hold what those of timed launches do, so that nobody can tell those by it.
    bool last = false;
    /// Where theCase points when it is none of the workload's.
    std::shared_ptr<const workload::Case> own = nullptr;
    bool hard = false; ///< of hardContents()
};

/// Makes the instances of the steps, in order. Ahead: on a thread of its own, as far as there is room, while the candidate is compiled and
/// those before are checked. Otherwise when they are taken: where the CPU is what is measured. make() is never called by two threads
/// at once.
class CaseQueue
{
public:
    using Make = std::function<Result<CaseInstancePtr>(const workload::Case &, std::uint64_t seed)>;

    CaseQueue(std::vector<CheckStep> steps, bool ahead, Make make);
    /// Waits for the instance that is being made.
    ~CaseQueue();
    CaseQueue(const CaseQueue &) = delete;
    CaseQueue &operator=(const CaseQueue &) = delete;

    [[nodiscard]] const std::vector<CheckStep> &steps() const { return m_steps; }
    /// The next step's.
    [[nodiscard]] Result<CaseInstancePtr> take();

private:
    void work(const std::stop_token &stop);

    const std::vector<CheckStep> m_steps;
    const Make m_make;
    std::size_t m_taken = 0;
    std::mutex m_mutex;
    std::condition_variable_any m_change;
    std::deque<Result<CaseInstancePtr>> m_ready;
    std::size_t m_readyBytes = 0;
    std::jthread m_thread; ///< last: it uses everything above
};

} // namespace klineage::gate
