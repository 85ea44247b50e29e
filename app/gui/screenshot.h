// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>

namespace klineage::ui {
class MainWindow;
}

namespace klineage::app {

/// Waits until the window shows what was asked for, saves a picture of it and ends the application: exit code 0, or 1 with a
/// sentence on standard error.
class Screenshot : public QObject
{
    Q_OBJECT

public:
    Screenshot(ui::MainWindow *window, const QString &fileName);

private:
    void look();
    void finish(const QString &problem);

    ui::MainWindow *m_window;
    QString m_fileName;
    int m_settledLooks = 0;
    qint64 m_startedMs = 0;
};

} // namespace klineage::app
