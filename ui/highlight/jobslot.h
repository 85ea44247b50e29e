// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include <functional>
#include <memory>
#include <stop_token>

class QThreadPool;

namespace klineage::ui {

/// Where background work of the window runs.
[[nodiscard]] QThreadPool *interactivePool(); ///< what a person waits for
[[nodiscard]] QThreadPool *backgroundPool();  ///< one low-priority thread: highlighting, prefetching

/// Room for one background job at a time: starting another stops the one before and drops what it still has to say.
/// Lives on the GUI thread; destroying it drops everything, and never waits.
class JobSlot
{
public:
    /// Runs a function on the slot's thread, unless the job is no longer the slot's current one. Callable from the job's thread.
    using Post = std::function<void(std::function<void()>)>;
    using Work = std::function<void(const std::stop_token &stop, const Post &post)>;

    JobSlot();
    ~JobSlot();
    JobSlot(const JobSlot &) = delete;
    JobSlot &operator=(const JobSlot &) = delete;

    void start(QThreadPool *pool, Work work);
    void cancel();

private:
    std::shared_ptr<QObject>
        m_mailbox; ///< lives on the GUI thread, outlives the slot while a job may still post
    std::shared_ptr<quint64> m_current; ///< touched on the GUI thread only
    std::stop_source m_stop;
};

} // namespace klineage::ui
