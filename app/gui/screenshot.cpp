// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/screenshot.h"

#include "ui/models/workspacemodel.h"
#include "ui/shell/devicemonitor.h"
#include "ui/shell/mainwindow.h"

#include <QApplication>
#include <QDateTime>
#include <QPixmap>
#include <QTimer>

#include <cstdio>

namespace klineage::app {

namespace {

constexpr int lookMs = 30;
constexpr int looksNeeded = 4;         // panels that work in steps have come to rest
constexpr qint64 deviceWaitMs = 20000; // a picture without the devices is better than none
constexpr qint64 limitMs = 30000;

} // namespace

Screenshot::Screenshot(ui::MainWindow *window, const QString &fileName)
    : QObject(window)
    , m_window(window)
    , m_fileName(fileName)
    , m_startedMs(QDateTime::currentMSecsSinceEpoch())
{
    QTimer::singleShot(lookMs, this, &Screenshot::look);
}

void Screenshot::look()
{
    const qint64 waitedMs = QDateTime::currentMSecsSinceEpoch() - m_startedMs;
    const bool settled =
        m_window->isSettled() && (m_window->devices()->hasAnswer() || waitedMs > deviceWaitMs);
    m_settledLooks = settled ? m_settledLooks + 1 : 0;
    if (m_settledLooks < looksNeeded && waitedMs < limitMs) {
        QTimer::singleShot(lookMs, this, &Screenshot::look);
        return;
    }
    // A dialog that was asked for is the picture.
    QWidget *modal = QApplication::activeModalWidget();
    QWidget *shown = modal ? modal : m_window;
    if (m_settledLooks < looksNeeded)
        finish(tr("Cannot make the screenshot %1: the window was not complete after %2 seconds.")
                   .arg(m_fileName)
                   .arg(limitMs / 1000));
    else if (!m_window->workspace()->isLoaded())
        finish(tr("Cannot make the screenshot %1: %2").arg(m_fileName, m_window->workspaceError()));
    else if (!m_window->wantedError().isEmpty())
        finish(m_window->wantedError());
    else if (!shown->grab().save(m_fileName))
        finish(tr("Cannot write the screenshot %1: the folder must exist and the name end in .png or .jpg.")
                   .arg(m_fileName));
    else
        finish({});
}

void Screenshot::finish(const QString &problem)
{
    if (!problem.isEmpty())
        std::fprintf(stderr, "%s\n", qPrintable(problem));
    QCoreApplication::exit(problem.isEmpty() ? 0 : 1);
}

} // namespace klineage::app
