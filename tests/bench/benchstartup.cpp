// SPDX-License-Identifier: GPL-3.0-or-later
// From the start of the process to the first paint of the window: cold, with the program, its libraries and plugins on the disk alone, and
// warm. Cold is made without root: all that the program maps is copied, and the copies are put out of memory before each start.
#include "bench.h"
#include "tests/paths.h"
#include "uirows.h"

#include <QCoreApplication>
#include <QDir>
#include <QDirIterator>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QLibraryInfo>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>

#include <algorithm>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace klineage::bench {

namespace {

constexpr int warmRuns = 20;
constexpr int coldRuns = 5;
constexpr double warmGoalMs = 100;
constexpr double coldGoalMs = 300;
constexpr int patienceMs = 30000;
const QString firstPaint = QStringLiteral("first paint"); // what the window says
const QString filled = QStringLiteral("filled");

struct Start {
    QString program;
    QString workspace;
    QString home;
    QString libraries; ///< folder to look for libraries and plugins first; empty: the system's
};

/// That a process has had so far, all of its threads.
double processorMs(qint64 process)
{
    double ms = 0;
    const QDir tasks(QStringLiteral("/proc/%1/task").arg(process));
    for (const QString &task : tasks.entryList(QDir::Dirs | QDir::NoDotAndDotDot)) {
        QFile file(tasks.filePath(task) + QStringLiteral("/schedstat"));
        if (file.open(QIODevice::ReadOnly))
            ms += file.readAll().split(' ').front().toDouble() / 1e6;
    }
    return ms;
}

/// With KLINEAGE_STARTUP_TIME=1 the window says when it has painted ("first paint") and shows all that it is to show ("filled"). The clock here
/// has run since before the process was there.
double msUntil(const QString &said, const Start &start, QString *why)
{
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("KLINEAGE_STARTUP_TIME"), QStringLiteral("1"));
    environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
    for (const char *folder : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"})
        environment.insert(QLatin1String(folder), start.home); // nobody's own settings
    if (!start.libraries.isEmpty()) {
        environment.insert(QStringLiteral("LD_LIBRARY_PATH"), start.libraries);
        environment.insert(QStringLiteral("QT_PLUGIN_PATH"), start.libraries + QStringLiteral("/plugins"));
    }
    process.setProcessEnvironment(environment);
    process.setWorkingDirectory(start.home);
    process.setProcessChannelMode(QProcess::MergedChannels);
    QElapsedTimer clock;
    clock.start();
    process.start(start.program, {QStringLiteral("--workspace"), start.workspace});
    const QRegularExpression line(said + QStringLiteral(" [0-9]+ ms"));
    QString output;
    double elapsed = -1;
    while (elapsed < 0 && process.waitForReadyRead(patienceMs)) {
        output += QString::fromUtf8(process.readAll());
        if (line.match(output).hasMatch())
            elapsed = clockInUse() == Clock::Processor ? processorMs(process.processId())
                                                       : static_cast<double>(clock.nsecsElapsed()) / 1e6;
    }
    process.kill();
    process.waitForFinished();
    if (elapsed < 0)
        *why = QStringLiteral("klineage did not say \"%1\": %2").arg(said, output.right(400));
    return elapsed;
}

/// What a program links, as the loader finds it.
QStringList librariesOf(const QString &program)
{
    QProcess ldd;
    ldd.start(QStringLiteral("ldd"), {program});
    QStringList libraries;
    if (!ldd.waitForFinished(patienceMs))
        return libraries;
    static const QRegularExpression found(QStringLiteral("=> (/\\S+)"));
    auto matches = found.globalMatch(QString::fromUtf8(ldd.readAllStandardOutput()));
    while (matches.hasNext())
        libraries << matches.next().captured(1);
    return libraries;
}

/// A copy of the program in a folder with all that it maps: nothing else keeps that in memory.
Start copyOf(const Start &start, const QString &folder)
{
    Start copy = start;
    copy.libraries = folder + QStringLiteral("/lib");
    copy.program = folder + QStringLiteral("/bin/klineage");
    QDir().mkpath(folder + QStringLiteral("/bin"));
    QDir().mkpath(copy.libraries);
    QFile::copy(start.program, copy.program);
    for (const QString &library : librariesOf(start.program))
        QFile::copy(library, copy.libraries + QLatin1Char('/') + QFileInfo(library).fileName());
    const QDir plugins(QLibraryInfo::path(QLibraryInfo::PluginsPath));
    for (const char *kind : {"platforms", "imageformats", "iconengines", "platformthemes", "styles"}) {
        const QString to = copy.libraries + QStringLiteral("/plugins/") + QLatin1String(kind);
        QDir().mkpath(to);
        for (const QFileInfo &plugin : QDir(plugins.filePath(QLatin1String(kind))).entryInfoList(QDir::Files))
            QFile::copy(plugin.filePath(), to + QLatin1Char('/') + plugin.fileName());
    }
    return copy;
}

/// Writes a file out and asks for its pages to be dropped; adds up what is in memory all the same.
void evict(const QString &fileName, std::size_t *pages, std::size_t *resident)
{
    const int file = ::open(fileName.toLocal8Bit().constData(), O_RDONLY);
    if (file < 0)
        return;
    ::fsync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    const auto size = static_cast<std::size_t>(QFileInfo(fileName).size());
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void *mapped = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    if (mapped != MAP_FAILED) {
        std::vector<unsigned char> held((size + page - 1) / page);
        if (::mincore(mapped, size, held.data()) == 0) {
            *pages += held.size();
            *resident += static_cast<std::size_t>(std::count_if(
                held.begin(), held.end(), [](unsigned char flags) { return (flags & 1) != 0; }));
        }
        ::munmap(mapped, size);
    }
    ::close(file);
}

/// Share of the files below the folders that is in memory after all were put out of it.
double evictAll(const QStringList &folders)
{
    std::size_t pages = 0;
    std::size_t resident = 0;
    for (const QString &folder : folders) {
        QDirIterator files(folder, QDir::Files, QDirIterator::Subdirectories);
        while (files.hasNext())
            evict(files.next(), &pages, &resident);
    }
    return pages == 0 ? 1 : static_cast<double>(resident) / static_cast<double>(pages);
}

void coldStarts(Reporter &reporter, const Start &start)
{
    const QString name = QStringLiteral("startup.cold");
    // Beside the program: a temporary folder may be memory.
    const QTemporaryDir folder(QCoreApplication::applicationDirPath() + QStringLiteral("/cold-XXXXXX"));
    const Start copy = copyOf(start, folder.path());
    std::vector<double> samples;
    double held = 0;
    for (int i = 0; i < coldRuns; ++i) {
        held = std::max(held, evictAll({folder.path(), start.workspace}));
        QString why;
        const double elapsed = msUntil(firstPaint, copy, &why);
        if (elapsed < 0 || held > 0.1) {
            reporter.missing(name, elapsed < 0
                                       ? why
                                       : QStringLiteral("this machine keeps files in memory: %1 % stayed")
                                             .arg(100 * held, 0, 'f', 0));
            return;
        }
        samples.push_back(elapsed);
    }
    reporter.samplesAtMost(
        name, samples, QStringLiteral("ms"), coldGoalMs,
        QStringLiteral("program, libraries, plugins and workspace read from the disk; %1 starts, "
                       "offscreen")
            .arg(samples.size()));
}

/// Without a goal where that is 0.
void warmStarts(Reporter &reporter, const QString &name, const QString &said, const Start &start,
                const QString &what, double goalMs)
{
    std::vector<double> samples;
    for (int i = 0; i <= warmRuns; ++i) {
        QString why;
        const double elapsed = msUntil(said, start, &why);
        if (elapsed < 0) {
            reporter.missing(name, why);
            return;
        }
        if (i > 0) // the first one warms the disk cache
            samples.push_back(elapsed);
    }
    const QString note = QStringLiteral("%1; %2 starts, offscreen").arg(what).arg(samples.size());
    if (goalMs > 0)
        reporter.samplesAtMost(name, samples, QStringLiteral("ms"), goalMs, note);
    else
        reporter.samplesInfo(name, samples, QStringLiteral("ms"), note);
}

} // namespace

void firstWindow(Reporter &reporter)
{
    const QTemporaryDir home;
    const QTemporaryDir disk;
    const QTemporaryDir large;
    Start start{
        QCoreApplication::applicationDirPath() + QStringLiteral("/klineage"), disk.path(), home.path(), {}};
    QString why;
    if (!QFileInfo(start.program).isExecutable())
        why = QStringLiteral("%1 is not there: build the target klineage").arg(start.program);
    else if (!makeWorkspaceOnDisk(disk.path().toStdString(), 50, 200, &why)
             || !makeWorkspaceOnDisk(large.path().toStdString(), 50, cardCount, &why))
        why = QStringLiteral("no workspace to open: %1").arg(why);
    if (!why.isEmpty()) {
        reporter.missing(QStringLiteral("startup.warm"), why);
        return;
    }
    coldStarts(reporter, start);
    warmStarts(reporter, QStringLiteral("startup.warm"), firstPaint, start,
               QStringLiteral("start of the process to the first paint, 50 lineages and 200 cards"),
               warmGoalMs);
    warmStarts(reporter, QStringLiteral("startup.filled"), filled, start,
               QStringLiteral("the same until all panels show what was read"), 0);
    start.workspace = large.path();
    warmStarts(reporter, QStringLiteral("startup.warm_10k"), firstPaint, start,
               QStringLiteral("to the first paint with %1 cards").arg(cardCount), warmGoalMs);
}

namespace {

const Group group("startup", "time to the window's first paint, cold and warm", &firstWindow, true);

} // namespace

} // namespace klineage::bench
