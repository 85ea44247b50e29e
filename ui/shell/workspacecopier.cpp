// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/workspacecopier.h"

#include "core/workspace/installed.h"

namespace klineage::ui {

WorkspaceCopier::WorkspaceCopier(QObject *parent)
    : QObject(parent)
{}

WorkspaceCopier::~WorkspaceCopier() = default; // the thread is stopped and joined by its own destructor

void WorkspaceCopier::copy(const QString &from, const QString &to)
{
    if (m_isWorking)
        return;
    m_isWorking = true;
    m_thread = std::jthread([this, from, to](const std::stop_token &stop) {
        const Status status = copyWorkspace(from.toStdString(), to.toStdString(), stop);
        const QString problem = status ? QString() : QString::fromStdString(status.error().message);
        QMetaObject::invokeMethod(
            this,
            [this, to, problem] {
                m_isWorking = false;
                emit ended(to, problem);
            },
            Qt::QueuedConnection);
    });
}

} // namespace klineage::ui
