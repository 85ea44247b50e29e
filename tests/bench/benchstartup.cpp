// SPDX-License-Identifier: GPL-3.0-or-later
// From exec to the first paint of the window, in a process of its own.
#include "bench.h"
#include "tests/paths.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>

namespace klineage::bench {

namespace {

constexpr int runs = 8;
constexpr int patienceMs = 30000;

/// With KLINEAGE_STARTUP_TIME=1 the window prints "first paint 123 ms".
double firstPaintMs(const QString &program, const QString &home, QString *why)
{
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("KLINEAGE_STARTUP_TIME"), QStringLiteral("1"));
    environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
    for (const char *folder : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"})
        environment.insert(QLatin1String(folder), home); // nobody's own settings
    process.setProcessEnvironment(environment);
    process.setWorkingDirectory(QString::fromStdString(klineage::test::sourcePath()));
    process.setProcessChannelMode(QProcess::MergedChannels);
    process.start(program, {});
    static const QRegularExpression line(QStringLiteral("first paint:? *([0-9.]+) *ms"));
    QString output;
    double elapsed = -1;
    while (elapsed < 0 && process.waitForReadyRead(patienceMs)) {
        output += QString::fromUtf8(process.readAll());
        if (const auto match = line.match(output); match.hasMatch())
            elapsed = match.captured(1).toDouble();
    }
    process.kill();
    process.waitForFinished();
    if (elapsed < 0)
        *why = QStringLiteral("klineage did not say when it painted first: %1").arg(output.right(400));
    return elapsed;
}

void run(Reporter &reporter)
{
    const QString name = QStringLiteral("startup.first_paint");
    const QString program = QCoreApplication::applicationDirPath() + QStringLiteral("/klineage");
    if (!QFileInfo(program).isExecutable()) {
        reporter.missing(name, QStringLiteral("%1 is not there: build the target klineage").arg(program));
        return;
    }
    const QTemporaryDir home;
    std::vector<double> samples;
    for (int i = 0; i < runs; ++i) {
        QString why;
        const double elapsed = firstPaintMs(program, home.path(), &why);
        if (elapsed < 0) {
            reporter.missing(name, why);
            return;
        }
        if (i > 0) // the first one warms the disk cache
            samples.push_back(elapsed);
    }
    reporter.atMost(
        name, percentile(samples, 0.5), QStringLiteral("ms"), 500,
        QStringLiteral("start of the process to the first paint, warm, median of %1").arg(samples.size()));
}

const Group group("startup", "time to the window's first paint", &run);

} // namespace

} // namespace klineage::bench
