// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/patience.h"

#include <QApplication>
#include <QTest>
#include <QTimer>

#include <memory>

namespace klineage::ui {

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
