// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/patience.h"

#include <QApplication>
#include <QTest>
#include <QTimer>

#include <memory>

namespace klineage::ui {

/// Waits until this window gets the keys. QTest::qWaitForWindowActive() is content while the window that a dialog belongs to, or a
/// dialog that belongs to the window, is active: keys for the one then act in the other.
[[nodiscard]] inline bool getsKeys(const QWidget &window)
{
    return QTest::qWaitFor([&window] { return QApplication::activeWindow() == &window; }, patienceMs);
}

/// As a click into it: no desktop gives the keys back to a window after a dialog when a test runs offscreen.
[[nodiscard]] inline bool takeKeys(QWidget &window)
{
    window.activateWindow();
    return getsKeys(window);
}

/// Does something with the next modal dialog of this kind, once it is there and active: keys that open one may be handled after timers
/// that were started before them. What was begun is not waited for.
template <typename Dialog, typename Act>
void withNextModal(QObject *context, Act act)
{
    auto *timer = new QTimer(context);
    QObject::connect(timer, &QTimer::timeout, context, [timer, act] {
        auto *dialog = qobject_cast<Dialog *>(QApplication::activeModalWidget());
        if (!dialog || !dialog->isActiveWindow())
            return;
        timer->stop();
        timer->deleteLater();
        act(*dialog);
    });
    timer->start(20);
}

} // namespace klineage::ui
