// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/jobslot.h"

#include <QThreadPool>

namespace klineage::ui {

QThreadPool *interactivePool()
{
    static QThreadPool pool;
    static const bool ready = [] {
        pool.setMaxThreadCount(2);
        pool.setExpiryTimeout(-1);
        return true;
    }();
    Q_UNUSED(ready)
    return &pool;
}

QThreadPool *backgroundPool()
{
    static QThreadPool pool;
    static const bool ready = [] {
        pool.setMaxThreadCount(1);
        pool.setExpiryTimeout(-1);
        pool.setThreadPriority(QThread::LowPriority);
        return true;
    }();
    Q_UNUSED(ready)
    return &pool;
}

JobSlot::JobSlot()
    : m_mailbox(new QObject, [](QObject *mailbox) { mailbox->deleteLater(); })
    , m_current(std::make_shared<quint64>(0))
{}

JobSlot::~JobSlot()
{
    m_stop.request_stop();
}

void JobSlot::start(QThreadPool *pool, Work work)
{
    cancel();
    m_stop = std::stop_source();
    const std::weak_ptr<quint64> current = m_current;
    const Post post = [mailbox = m_mailbox, current, id = *m_current](std::function<void()> function) {
        QMetaObject::invokeMethod(
            mailbox.get(),
            [current, id, function = std::move(function)] {
                const auto now = current.lock();
                if (now && *now == id)
                    function();
            },
            Qt::QueuedConnection);
    };
    pool->start([work = std::move(work), post, stop = m_stop.get_token()] {
        if (!stop.stop_requested())
            work(stop, post);
    });
}

void JobSlot::cancel()
{
    m_stop.request_stop();
    ++*m_current;
}

} // namespace klineage::ui
