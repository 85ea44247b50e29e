// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QProcess>

namespace klineage::ui {

/// Writes a report through klineage --report, in a process of its own: it draws in light colours and takes a while. One at a time.
/// Lives on the GUI thread.
class ReportMaker : public QObject
{
    Q_OBJECT

public:
    explicit ReportMaker(QObject *parent = nullptr);
    ~ReportMaker() override;

    /// subject: as klineage-cli report takes it. ended() follows, maybe at once; not while isWorking().
    void make(const QString &workspace, const QString &subject, const QString &fileName);
    void stop();
    [[nodiscard]] bool isWorking() const { return m_process.state() != QProcess::NotRunning; }

signals:
    /// problem: a sentence; empty: the file is there.
    void ended(const QString &fileName, const QString &problem);

private:
    void finish(int exitCode, QProcess::ExitStatus status);

    QProcess m_process;
    QString m_fileName;
    bool m_isStopped = false;
};

} // namespace klineage::ui
