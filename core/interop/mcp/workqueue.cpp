// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/mcp/workqueue.h"

namespace klineage::mcp {

WorkQueue::WorkQueue()
    : m_thread([this] { run(); })
{}

WorkQueue::~WorkQueue()
{
    {
        const std::lock_guard lock(m_mutex);
        m_ending = true;
        m_jobs.clear();
    }
    m_changed.notify_all();
    m_thread.join();
}

void WorkQueue::add(std::function<void()> job)
{
    {
        const std::lock_guard lock(m_mutex);
        m_jobs.push_back(std::move(job));
    }
    m_changed.notify_all();
}

void WorkQueue::wait()
{
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_jobs.empty() && !m_busy; });
}

void WorkQueue::run()
{
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_changed.wait(lock, [this] { return m_ending || !m_jobs.empty(); });
        if (m_ending)
            return;
        const std::function<void()> job = std::move(m_jobs.front());
        m_jobs.pop_front();
        m_busy = true;
        lock.unlock();
        job();
        lock.lock();
        m_busy = false;
        m_changed.notify_all();
    }
}

} // namespace klineage::mcp
