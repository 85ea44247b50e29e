// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/importrunner.h"

#include "ui/models/ownprogram.h"

#include <QDir>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTimer>

#include <utility>

namespace klineage::ui {

namespace {

constexpr qsizetype largestReport = qsizetype{64} << 20;
constexpr int killDelayMs = 5000;

/// The command's group, and the key of a name in its report.
const char *groupOf(ImportRunner::Kind kind)
{
    switch (kind) {
    case ImportRunner::Kind::Cards:
        return "card";
    case ImportRunner::Kind::Archive:
        return "lineage";
    case ImportRunner::Kind::Problems:
    case ImportRunner::Kind::Operator:
        break;
    }
    return "workload";
}

QStringList textsOf(const QJsonValue &list)
{
    QStringList texts;
    for (const QJsonValue &text : list.toArray())
        texts << text.toString();
    return texts;
}

/// The rows of a lineage that was imported, or would be.
void addRows(ImportReport &report, const QJsonArray &rows)
{
    for (const QJsonValue &value : rows) {
        const QJsonObject object = value.toObject();
        ImportedEntry row;
        row.name = object.value(QLatin1String("id")).toString();
        if (row.name.isEmpty())
            continue;
        row.source = object.value(QLatin1String("source")).toString();
        row.notes << object.value(QLatin1String("text")).toString();
        const bool isState = object.value(QLatin1String("kind")).toString() == QLatin1String("state");
        row.part = isState ? ImportedEntry::Part::State : ImportedEntry::Part::Attempt;
        ++(isState ? report.states : report.attempts);
        report.entries.push_back(std::move(row));
    }
}

/// The sentences of {"error": {"message", "detail"}}; empty: it is none.
QString errorOf(const QJsonObject &report)
{
    const QJsonObject error = report.value(QLatin1String("error")).toObject();
    const QString detail = error.value(QLatin1String("detail")).toString();
    return (error.value(QLatin1String("message")).toString() + QLatin1Char(' ') + detail).trimmed();
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
                       : errorOf(document.object());
        if (problem->isEmpty())
            *problem = ImportRunner::tr("klineage-cli gave no report.");
        return report;
    }
    problem->clear();
    for (const QJsonValue &value : entries.toArray()) {
        const QJsonObject object = value.toObject();
        ImportedEntry entry;
        entry.source = object.value(QLatin1String("source")).toString();
        entry.name = object.value(QLatin1String(key)).toString();
        entry.reason = object.value(QLatin1String("reason")).toString();
        entry.notes = textsOf(object.value(QLatin1String("notes")));
        report.imported += entry.name.isEmpty() ? 0 : 1;
        report.entries.push_back(std::move(entry));
        addRows(report, object.value(QLatin1String("rows")).toArray());
    }
    report.next = textsOf(document.object().value(QLatin1String("next")));
    return report;
}

ImportReport parseOperatorReport(const QByteArray &json, const QString &source, QString *problem)
{
    ImportReport report;
    const QJsonObject object = QJsonDocument::fromJson(json).object();
    if (!object.value(QLatin1String("ok")).isBool()) {
        *problem = errorOf(object);
        if (problem->isEmpty())
            *problem = ImportRunner::tr("klineage-cli gave no report.");
        return report;
    }
    problem->clear();
    ImportedEntry entry;
    entry.source = source;
    entry.name = object.value(QLatin1String("workload")).toString();
    entry.reason = object.value(QLatin1String("reason")).toString();
    entry.notes = textsOf(object.value(QLatin1String("notes")));
    if (const QString kept = object.value(QLatin1String("kept")).toString(); !kept.isEmpty())
        entry.notes << ImportRunner::tr("What it replaces was kept in %1.").arg(kept);
    report.imported = entry.name.isEmpty() ? 0 : 1;
    report.entries.push_back(std::move(entry));
    return report;
}

ImportRunner::ImportRunner(QObject *parent)
    : QObject(parent)
    , m_process(this)
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
    m_source = QFileInfo(arguments.value(arguments.size() - 1)).fileName();
    m_isStopped = false;
    const QString program = ownProgram(QStringLiteral("klineage-cli"));
    if (program.isEmpty()) {
        emit ended({}, tr("Cannot import: the program klineage-cli is neither here nor on PATH."));
        return;
    }
    // What goes on with an archive is told for a shell in any folder: from here none is in the workspace.
    m_process.setWorkingDirectory(kind == Kind::Archive ? QDir::rootPath() : QString());
    m_process.start(program,
                    QStringList{QStringLiteral("--workspace"), workspace, QStringLiteral("--json"),
                                QLatin1String(groupOf(kind)),
                                kind == Kind::Operator ? QStringLiteral("new") : QStringLiteral("import")}
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
    const ImportReport report = m_kind == Kind::Operator ? parseOperatorReport(out, m_source, &problem)
                                                         : parseImportReport(out, groupOf(m_kind), &problem);
    const bool isStopped = std::exchange(m_isStopped, false);
    const bool isWhole = m_kind == Kind::Archive; // a lineage is there or not; its report, too
    if (isStopped && isWhole && !problem.isEmpty())
        problem = tr("The import was stopped. A lineage is written whole or not at all.");
    else if (isStopped && m_kind == Kind::Operator)
        problem = tr("The import was stopped.");
    else if (isStopped && !isWhole)
        problem = tr("The import was stopped; what it had imported stays.");
    else if (status != QProcess::NormalExit)
        problem = tr("klineage-cli ended in the middle of it.");
    else if (!problem.isEmpty() && out.trimmed().isEmpty() && !said.isEmpty()) // its options are wrong
        problem = said.section(QLatin1Char('\n'), -1).remove(QStringLiteral("klineage-cli: "));
    Q_UNUSED(exitCode) // 1: nothing was imported, which the report says
    emit ended(report, problem);
}

} // namespace klineage::ui
