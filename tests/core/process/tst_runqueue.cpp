// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/runqueue.h"

#include <QTest>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace klineage::process;

namespace {

double cpuSeconds()
{
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

} // namespace

class TestRunQueue : public QObject
{
    Q_OBJECT
private slots:
    void threadsThatShareACoreWait()
    {
        if (!std::filesystem::exists("/proc/self/schedstat"))
            QSKIP("This kernel keeps no account.");
        const RunQueueWaits before = runQueueWaits(::getpid());
        QVERIFY(before.contains(::gettid()));
        RunQueueWaits after;
        {
            std::atomic<int> working = 4;
            std::atomic<bool> read = false;
            std::vector<std::jthread> threads;
            for (int i = 0; i < 4; ++i) {
                threads.emplace_back([&] {
                    cpu_set_t mine;
                    sched_getaffinity(0, sizeof mine, &mine);
                    int first = 0;
                    while (!CPU_ISSET(first, &mine))
                        ++first;
                    CPU_ZERO(&mine);
                    CPU_SET(first, &mine);
                    sched_setaffinity(0, sizeof mine, &mine);
                    while (cpuSeconds() < 0.1) {}
                    --working;
                    while (!read) // its account ends with it
                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                });
            }
            while (working > 0)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            after = runQueueWaits(::getpid());
            read = true;
        }
        // Four threads of 100 ms each on one core: the last of them had to wait for most of the time of the others.
        const double waited = longestWaitNs(before, after);
        QVERIFY2(waited > 100e6, qPrintable(QString::number(waited)));
    }

    void nobodyWaitsInAProcessThatIsNotThere()
    {
        QVERIFY(runQueueWaits(-1).empty());
        QCOMPARE(longestWaitNs({}, {}), 0.0);
    }

    void theLongestOfTheDifferences()
    {
        QCOMPARE(longestWaitNs({{1, 5}, {2, 100}, {3, 7}}, {{1, 25}, {2, 110}, {4, 12}}), 20.0);
    }
};

QTEST_GUILESS_MAIN(TestRunQueue)
#include "tst_runqueue.moc"
