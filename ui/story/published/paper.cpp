// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/published/paper.h"

#include <QFile>
#include <QHash>
#include <QStringList>

static void initPaperResources()
{
    Q_INIT_RESOURCE(paper);
}

namespace klineage::ui {

namespace {

/// A row by the names of its columns. The files are ours: no field of them holds a comma.
using PaperRow = QHash<QString, QString>;

std::vector<PaperRow> rowsOfPaper(const QString &name)
{
    QFile file(QStringLiteral(":/paper/") + name);
    if (!file.open(QIODevice::ReadOnly))
        return {};
    const QStringList lines = QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    std::vector<PaperRow> rows;
    const QStringList names = lines.value(0).split(QLatin1Char(','));
    for (const QString &line : lines.mid(1)) {
        const QStringList fields = line.split(QLatin1Char(','));
        PaperRow row;
        for (qsizetype i = 0; i < names.size(); ++i)
            row[names[i]] = fields.value(i);
        rows.push_back(row);
    }
    return rows;
}

double number(const PaperRow &row, const char *column)
{
    return row.value(QLatin1String(column)).toDouble(); // "FAIL" and nothing: 0
}

QString field(const PaperRow &row, const char *column)
{
    return row.value(QLatin1String(column));
}

Paper readPaper()
{
    initPaperResources();
    QHash<QString, QString> devices;
    for (const PaperRow &row : rowsOfPaper(QStringLiteral("platforms.csv")))
        devices[field(row, "platform")] = field(row, "device");
    QHash<QString, PaperRow> workloads;
    for (const PaperRow &row : rowsOfPaper(QStringLiteral("workloads.csv")))
        workloads[field(row, "kernel")] = row;
    Paper paper;
    for (const PaperRow &row : rowsOfPaper(QStringLiteral("latencies.csv"))) {
        const PaperRow &workload = workloads[field(row, "kernel")];
        const QString platform = field(row, "platform");
        paper.latencies.push_back({field(row, "kernel"), platform, devices.value(platform),
                                   workload.value(QStringLiteral("reference_") + platform.toLower()),
                                   field(workload, "ours"), number(row, "klineage_ms"),
                                   number(row, "adaexplore_ms"), number(row, "accelopt_ms"),
                                   number(row, "reference_ms"), field(row, "note")});
    }
    for (const PaperRow &row : rowsOfPaper(QStringLiteral("gdncards.csv")))
        paper.cards.push_back(
            {field(row, "card"), field(row, "part"), number(row, "factor"), field(row, "over")});
    for (const PaperRow &row : rowsOfPaper(QStringLiteral("steps.csv")))
        paper.steps.push_back(
            {field(row, "kernel"), field(row, "platform"), devices.value(field(row, "platform")),
             field(row, "policy"), field(row, "reference"), field(workloads[field(row, "kernel")], "ours"),
             static_cast<int>(number(row, "valid")), number(row, "low"), number(row, "high"),
             static_cast<int>(number(row, "audited")), number(row, "audited_best"),
             static_cast<int>(number(row, "wrappers")), static_cast<int>(number(row, "failed"))});
    return paper;
}

} // namespace

const Paper &paper()
{
    static const Paper read = readPaper();
    return read;
}

} // namespace klineage::ui
