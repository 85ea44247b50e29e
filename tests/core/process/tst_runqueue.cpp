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
        const ProcessorTimes before = processorTimes(::getpid());
        QVERIFY(before.contains(::gettid()));
        ProcessorTimes after;
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
            after = processorTimes(::getpid());
            read = true;
        }
        // Four threads of 100 ms each on one core: the last of them had to wait for most of the time of the others.
        const ProcessorTime longest = longestBetween(before, after);
        QVERIFY2(longest.waitedNs > 100e6, qPrintable(QString::number(longest.waitedNs)));
        QVERIFY2(longest.ranNs > 90e6, qPrintable(QString::number(longest.ranNs)));
    }

    void nobodyWaitsInAProcessThatIsNotThere()
    {
        QVERIFY(processorTimes(-1).empty());
        QCOMPARE(longestBetween({}, {}).waitedNs, 0.0);
    }

    void theLongestOfTheDifferences()
    {
        const ProcessorTime longest = longestBetween({{1, {3, 5}}, {2, {0, 100}}, {3, {9, 7}}},
                                                     {{1, {4, 25}}, {2, {30, 110}}, {4, {2, 12}}});
        QCOMPARE(longest.waitedNs, 20.0);
        QCOMPARE(longest.ranNs, 30.0);
    }
};

QTEST_GUILESS_MAIN(TestRunQueue)
#include "tst_runqueue.moc"
