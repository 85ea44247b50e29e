// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include <thread>

namespace klineage::ui {

/// Copies a workspace on a thread of its own, one at a time. Used from the thread that it lives in; ended() arrives there.
class WorkspaceCopier : public QObject
{
    Q_OBJECT

public:
    explicit WorkspaceCopier(QObject *parent = nullptr);
    ~WorkspaceCopier() override;

    /// To a folder that is not there yet. Does nothing while another copy is made.
    void copy(const QString &from, const QString &to);
    [[nodiscard]] bool isWorking() const { return m_isWorking; }

signals:
    /// problem is empty when all of it is there.
    void ended(const QString &to, const QString &problem);

private:
    bool m_isWorking = false;
    std::jthread m_thread;
};

} // namespace klineage::ui
