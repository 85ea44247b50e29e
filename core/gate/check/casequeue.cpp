// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/casequeue.h"

namespace klineage::gate {

namespace {

constexpr std::size_t roomBytes = std::size_t{1} << 30; ///< what may wait, unless one alone is more

std::size_t bytesOf(const Result<CaseInstancePtr> &made)
{
    std::size_t bytes = 0;
    if (made) {
        for (const HostTensor &tensor : (*made)->tensors)
            bytes += tensor.elements() * kernel::sizeOf(tensor.dtype);
    }
    return bytes;
}

} // namespace

CaseQueue::CaseQueue(std::vector<CheckStep> steps, bool ahead, Make make)
    : m_steps(std::move(steps))
    , m_make(std::move(make))
{
    if (ahead)
        m_thread = std::jthread([this](const std::stop_token &stop) { work(stop); });
}

CaseQueue::~CaseQueue() = default;

void CaseQueue::work(const std::stop_token &stop)
{
    for (const CheckStep &step : m_steps) {
        {
            std::unique_lock lock(m_mutex);
            if (!m_change.wait(lock, stop, [this] { return m_readyBytes < roomBytes; }))
                return;
        }
        if (stop.stop_requested())
            return;
        auto made = m_make(*step.theCase, step.seed);
        const bool failed = !made;
        const std::lock_guard lock(m_mutex);
        m_readyBytes += bytesOf(made);
        m_ready.push_back(std::move(made));
        m_change.notify_all();
        if (failed)
            return; // nobody asks for those after it
    }
}

Result<CaseInstancePtr> CaseQueue::take()
{
    const CheckStep &step = m_steps.at(m_taken++);
    if (!m_thread.joinable())
        return m_make(*step.theCase, step.seed);
    std::unique_lock lock(m_mutex);
    m_change.wait(lock, [this] { return !m_ready.empty(); });
    auto made = std::move(m_ready.front());
    m_ready.pop_front();
    m_readyBytes -= bytesOf(made);
    m_change.notify_all();
    return made;
}

} // namespace klineage::gate
