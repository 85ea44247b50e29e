// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace klineage::mcp {

/// Runs jobs one after the other on a thread of its own. Destruction waits for the job that runs and drops the others.
class WorkQueue
{
public:
    WorkQueue();
    ~WorkQueue();
    WorkQueue(const WorkQueue &) = delete;
    WorkQueue &operator=(const WorkQueue &) = delete;

    void add(std::function<void()> job);
    /// Blocks until nothing is queued or running.
    void wait();

private:
    void run();

    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<std::function<void()>> m_jobs;
    bool m_busy = false;
    bool m_ending = false;
    std::thread m_thread;
};

} // namespace klineage::mcp
