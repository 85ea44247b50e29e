// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/importrunner.h"

#include "ui/models/ownprogram.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTimer>

#include <utility>

namespace klineage::ui {

namespace {

constexpr qsizetype largestReport = qsizetype{64} << 20;
constexpr int killDelayMs = 5000;

const char *nameKeyOf(ImportRunner::Kind kind)
{
    return kind == ImportRunner::Kind::Cards ? "card" : "workload";
}

} // namespace

ImportReport parseImportReport(const QByteArray &json, const char *key, QString *problem)
{
    ImportReport report;
    QJsonParseError error;
    const QJsonDocument document =
        json.size() > largestReport ? QJsonDocument() : QJsonDocument::fromJson(json, &error);
    const QJsonValue entries = document.object().value(QLatin1String("entries"));
    if (!entries.isArray()) {
        *problem = json.size() > largestReport
                       ? ImportRunner::tr("The report has more than %1 bytes.").arg(largestReport)
                       : ImportRunner::tr("klineage-cli gave no report.");
        return report;
    }
    problem->clear();
    for (const QJsonValue &value : entries.toArray()) {
        const QJsonObject object = value.toObject();
        ImportedEntry entry;
        entry.source = object.value(QLatin1String("source")).toString();
        entry.name = object.value(QLatin1String(key)).toString();
        entry.reason = object.value(QLatin1String("reason")).toString();
        for (const QJsonValue &note : object.value(QLatin1String("notes")).toArray())
            entry.notes << note.toString();
        report.imported += entry.name.isEmpty() ? 0 : 1;
        report.entries.push_back(std::move(entry));
    }
    return report;
}

ImportRunner::ImportRunner(QObject *parent)
    : QObject(parent)
{
    connect(&m_process, &QProcess::finished, this, &ImportRunner::finish);
    connect(&m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) // finished() does not follow
            emit ended({},
                       tr("Cannot import: klineage-cli does not start: %1.").arg(m_process.errorString()));
    });
}

ImportRunner::~ImportRunner()
{
    m_process.disconnect(this);
    if (isRunning()) {
        m_process.kill();
        m_process.waitForFinished();
    }
}

void ImportRunner::start(Kind kind, const QString &workspace, const QStringList &arguments)
{
    if (isRunning())
        return;
    m_kind = kind;
    m_isStopped = false;
    const QString program = ownProgram(QStringLiteral("klineage-cli"));
    if (program.isEmpty()) {
        emit ended({}, tr("Cannot import: the program klineage-cli is neither here nor on PATH."));
        return;
    }
    const QString group = kind == Kind::Cards ? QStringLiteral("card") : QStringLiteral("workload");
    m_process.start(program, QStringList{QStringLiteral("--workspace"), workspace, QStringLiteral("--json"),
                                         group, QStringLiteral("import")}
                                 + arguments);
}

/// It is asked to end, so that the entry at hand is whole; if it does not, it is ended.
void ImportRunner::stop()
{
    if (!isRunning())
        return;
    m_isStopped = true;
    m_process.terminate();
    QTimer::singleShot(killDelayMs, &m_process, [this] {
        if (m_isStopped)
            m_process.kill();
    });
}

void ImportRunner::finish(int exitCode, QProcess::ExitStatus status)
{
    const QByteArray out = m_process.readAllStandardOutput();
    const QString said = QString::fromUtf8(m_process.readAllStandardError()).trimmed();
    QString problem;
    const ImportReport report = parseImportReport(out, nameKeyOf(m_kind), &problem);
    if (std::exchange(m_isStopped, false))
        problem = tr("The import was stopped; what it had imported stays.");
    else if (status != QProcess::NormalExit)
        problem = tr("klineage-cli ended in the middle of it.");
    else if (!problem.isEmpty() && !said.isEmpty())
        problem = said.section(QLatin1Char('\n'), -1).remove(QStringLiteral("klineage-cli: "));
    Q_UNUSED(exitCode) // 1: nothing was imported, which the report says
    emit ended(report, problem);
}

} // namespace klineage::ui
