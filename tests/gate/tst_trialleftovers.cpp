// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a trial leaves behind: no process, no file, no System V object; and no more memory on the way than is stated.
#include "core/gate/session/sandbox.h"
#include "core/gate/supervisor/supervisor.h"
#include "core/process/isolation.h"

#include "tests/core/gate/gatefixture.h"
#include "tests/gate/realworker.h"

#include <QtTest>

#include <algorithm>
#include <atomic>
#include <thread>

using namespace klineage;
using namespace klineage::gate;

class TestTrialLeftovers : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void nothingOutlivesATrial_data();
    void nothingOutlivesATrial();
};

namespace {

/// Lines of a table of System V objects.
int linesOf(const char *table)
{
    QFile file(table);
    return file.open(QIODevice::ReadOnly) ? static_cast<int>(file.readAll().count('\n')) : 0;
}

/// (process, parent) of all that there are.
std::vector<std::pair<int, int>> parentsOfAll()
{
    std::vector<std::pair<int, int>> parents;
    for (const QString &entry : QDir("/proc").entryList({"[0-9]*"}, QDir::Dirs)) {
        QFile file("/proc/" + entry + "/stat");
        if (!file.open(QIODevice::ReadOnly))
            continue;
        const QByteArray text = file.readAll();
        const QList<QByteArray> fields = text.mid(text.lastIndexOf(')') + 2).split(' ');
        if (fields.size() > 2)
            parents.emplace_back(entry.toInt(), fields[1].toInt());
    }
    return parents;
}

std::vector<int> childrenOfThis()
{
    std::vector<int> children;
    for (const auto &[child, parent] : parentsOfAll()) {
        if (parent == static_cast<int>(QCoreApplication::applicationPid()))
            children.push_back(child);
    }
    return children;
}

/// Bytes that a process has in memory that is its own, and its children's.
std::uint64_t memoryOf(int pid, const std::vector<std::pair<int, int>> &parents)
{
    std::uint64_t bytes = 0;
    QFile file("/proc/" + QString::number(pid) + "/status");
    if (file.open(QIODevice::ReadOnly)) {
        for (const QByteArray &line : file.readAll().split('\n')) {
            if (line.startsWith("RssAnon:"))
                bytes = line.simplified().split(' ').value(1).toULongLong() << 10;
        }
    }
    for (const auto &[child, parent] : parents)
        bytes = parent == pid ? std::max(bytes, memoryOf(child, parents)) : bytes;
    return bytes;
}

/// The most that any process beneath this one had while it lived.
class MemoryWatch
{
public:
    MemoryWatch()
        : m_thread([this](const std::stop_token &stop) {
            while (!stop.stop_requested()) {
                const auto parents = parentsOfAll();
                for (const int child : childrenOfThis())
                    m_most = std::max<std::uint64_t>(m_most, memoryOf(child, parents));
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            }
        })
    {}
    std::uint64_t most()
    {
        m_thread.request_stop();
        m_thread.join();
        return m_most;
    }

private:
    std::atomic<std::uint64_t> m_most{0};
    std::jthread m_thread;
};

/// What a bomb may take: what compiling may, and the gate's own buffers, which are small here.
constexpr std::uint64_t mostMemory = compileMemoryBytes + (std::uint64_t{256} << 20);

} // namespace

void TestTrialLeftovers::initTestCase()
{
    Supervisor supervisor(test::realWorker());
    for (const DeviceInfo &device : supervisor.devices()) {
        if (device.kind == kernel::DeviceKind::OpenCl && !device.available)
            QSKIP(("No OpenCL device: " + device.detail).c_str());
    }
}

void TestTrialLeftovers::nothingOutlivesATrial_data()
{
    QTest::addColumn<QString>("candidate");
    QTest::addColumn<QStringList>("status");
    QTest::newRow("honest") << QString::fromStdString(test::naive()) << QStringList{"correct"};
    std::string table = test::naive();
    table.insert(table.find("__kernel"), "__constant int table[1 << 28] = {[0 ... (1 << 28) - 1] = 1};\n");
    table.replace(table.find("= sum;"), 6, "= sum * table[row];");
    QTest::newRow("table bomb") << QString::fromStdString(table)
                                << QStringList{"timeout", "compile_error", "crash"};
    const std::string local = test::naive("__local volatile char room[0x7fffffff];\n"
                                          "    for (int i = 0; i < 2000000000; i += 4096) room[i] = 1;\n"
                                          "    c[row * N + col] = sum + room[row];");
    QTest::newRow("local memory bomb")
        << QString::fromStdString(local) << QStringList{"timeout", "compile_error", "crash"};
}

void TestTrialLeftovers::nothingOutlivesATrial()
{
    QFETCH(QString, candidate);
    QFETCH(QStringList, status);
    const QTemporaryDir folder;
    const QByteArray kept = qgetenv("TMPDIR");
    qputenv("TMPDIR", folder.path().toUtf8());
    const std::vector<int> before = childrenOfThis();
    const int segments = linesOf("/proc/sysvipc/shm");
    const int semaphores = linesOf("/proc/sysvipc/sem");
    const int queues = linesOf("/proc/sysvipc/msg");
    MemoryWatch watch;
    {
        Supervisor supervisor(test::realWorker());
        GateJob job = test::quickJob(candidate.toStdString());
        if (status.front() != "correct")
            job.request.deadlineSeconds = 8;
        const auto trial = supervisor.gate(job);
        QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
        QVERIFY2(status.contains(toString(trial->verdict.status)), trial->verdict.message.c_str());
        if (trial->verdict.status == VerdictStatus::Correct) {
            QVERIFY(trial->trust == (process::isolationSupport().seccomp ? Trust::Audited : Trust::Advisory));
            QCOMPARE(trial->environment.facts.at("isolation").ends_with("sealed"),
                     process::isolationSupport().seccomp);
        }
    }
    const std::uint64_t most = watch.most();
    QVERIFY2(most > 0 && most <= mostMemory, qPrintable(QString::number(most)));
    kept.isEmpty() ? qunsetenv("TMPDIR") : qputenv("TMPDIR", kept);
    QCOMPARE(childrenOfThis(), before);
    QVERIFY(linesOf("/proc/sysvipc/shm") <= segments);
    QVERIFY(linesOf("/proc/sysvipc/sem") <= semaphores);
    QVERIFY(linesOf("/proc/sysvipc/msg") <= queues);
    QCOMPARE(QDir(folder.path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot),
             QStringList());
}

QTEST_GUILESS_MAIN(TestTrialLeftovers)
#include "tst_trialleftovers.moc"
