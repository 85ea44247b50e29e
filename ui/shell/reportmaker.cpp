// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/reportmaker.h"

#include "ui/models/ownprogram.h"

namespace klineage::ui {

ReportMaker::ReportMaker(QObject *parent)
    : QObject(parent)
{
    connect(&m_process, &QProcess::finished, this, &ReportMaker::finish);
    connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) // finished() does not follow
            emit ended(m_fileName,
                       tr("Cannot write the report %1: %2.").arg(m_fileName, m_process.errorString()));
    });
}

ReportMaker::~ReportMaker()
{
    m_process.disconnect(this);
    if (isWorking()) {
        m_process.kill();
        m_process.waitForFinished();
    }
}

void ReportMaker::make(const QString &workspace, const QString &subject, const QString &fileName)
{
    if (isWorking())
        return;
    m_fileName = fileName;
    m_isStopped = false;
    const QString program = ownProgram(QStringLiteral("klineage"));
    if (program.isEmpty()) {
        emit ended(fileName,
                   tr("Cannot write the report %1: the program klineage is neither here nor on PATH.")
                       .arg(fileName));
        return;
    }
    m_process.start(program, {QStringLiteral("--workspace"), workspace, QStringLiteral("--report"), subject,
                              QStringLiteral("--output"), fileName});
}

void ReportMaker::stop()
{
    m_isStopped = isWorking();
    m_process.kill();
}

void ReportMaker::finish(int exitCode, QProcess::ExitStatus status)
{
    const QString said = QString::fromLocal8Bit(m_process.readAllStandardError()).trimmed();
    if (m_isStopped)
        emit ended(m_fileName, tr("The report %1 was stopped.").arg(m_fileName));
    else if (status != QProcess::NormalExit || exitCode != 0)
        emit ended(
            m_fileName,
            said.isEmpty()
                ? tr("Cannot write the report %1: klineage ended with %2.").arg(m_fileName).arg(exitCode)
                : said.section(QLatin1Char('\n'), -1));
    else
        emit ended(m_fileName, {});
}

} // namespace klineage::ui
