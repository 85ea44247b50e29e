// SPDX-License-Identifier: GPL-3.0-or-later
// What a launch came to on a device, and what keeps more blocks off a multiprocessor.
#include "core/lineage/lineage.h"
#include "core/trial/analysis/launch/launchrows.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::gate;

namespace {

Trial launched(std::initializer_list<std::pair<const char *, double>> metrics, const char *kernel = "gemm")
{
    Trial trial;
    trial.surface = kernel::Surface::Cuda;
    trial.environment.platform = "sm90";
    trial.environment.facts["sm_count"] = "132";
    for (const auto &[name, value] : metrics)
        trial.metrics.push_back({name, value, "", kernel});
    return trial;
}

/// The last state of gemm/sm90: one block a multiprocessor.
Trial persistent()
{
    return launched({{"registers", 168},
                     {"static_shared", 64},
                     {"blocks", 132},
                     {"threads_per_block", 384},
                     {"dynamic_shared", 230400},
                     {"blocks_per_sm", 1},
                     {"theoretical_occupancy", 18.75},
                     {"waves", 1}});
}

kernel::ResolvedPlan planOf(std::array<std::int64_t, 3> grid, std::array<std::int64_t, 3> block)
{
    kernel::ResolvedPlan plan;
    plan.launches.emplace_back();
    plan.launches.back().kernel = "gemm";
    plan.launches.back().grid = grid;
    plan.launches.back().block = block;
    return plan;
}

using Limits = std::vector<BlockLimit>;

const LaunchRow *rowOf(const std::vector<LaunchRow> &rows, const std::string &label)
{
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const LaunchRow &row) { return row.label == label; });
    return found == rows.end() ? nullptr : &*found;
}

} // namespace

Q_DECLARE_METATYPE(Limits)

class TestLaunch : public QObject
{
    Q_OBJECT

private slots:
    /// Worked out by hand from the table of the CUDA C++ Programming Guide.
    void limiter_data()
    {
        using enum BlockLimit;
        QTest::addColumn<QString>("platform");
        QTest::addColumn<int>("threads");
        QTest::addColumn<int>("registers");
        QTest::addColumn<double>("shared");
        QTest::addColumn<int>("blocks");
        QTest::addColumn<Limits>("limits");
        QTest::newRow("registers") << "sm90" << 256 << 64 << 0.0 << 4 << Limits{Registers};
        // 33 registers of 32 threads are given out as 1,280: 12 warps a partition, 48 in all.
        QTest::newRow("rounded up") << "sm90" << 256 << 33 << 0.0 << 6 << Limits{Registers};
        QTest::newRow("shared memory") << "sm90" << 128 << 32 << 100'000.0 << 2 << Limits{SharedMemory};
        // 2 × (113.5 KiB + 1 KiB) is more than 228 KiB: the system's part counts.
        QTest::newRow("the system's part")
            << "sm90" << 128 << 32 << 113.5 * 1024 << 1 << Limits{SharedMemory};
        QTest::newRow("threads") << "sm90" << 1024 << 16 << 0.0 << 2 << Limits{Threads};
        QTest::newRow("fewer threads") << "sm86" << 1024 << 16 << 0.0 << 1 << Limits{Threads};
        QTest::newRow("blocks") << "sm90" << 32 << 16 << 0.0 << 32 << Limits{Blocks};
        QTest::newRow("fewer blocks") << "sm89" << 32 << 16 << 0.0 << 24 << Limits{Blocks};
        QTest::newRow("two") << "sm90" << 256 << 126 << 98304.0 << 2 << Limits{Registers, SharedMemory};
        QTest::newRow("all threads, all registers")
            << "sm90" << 256 << 32 << 0.0 << 8 << Limits{Registers, Threads};
        // Nothing is taken of each block before 8.0.
        QTest::newRow("Turing") << "sm75" << 128 << 32 << 32.0 * 1024 << 2 << Limits{SharedMemory};
    }

    void limiter()
    {
        QFETCH(QString, platform);
        QFETCH(int, threads);
        QFETCH(int, registers);
        QFETCH(double, shared);
        QFETCH(int, blocks);
        QFETCH(Limits, limits);
        const SmLimits *sm = smLimits(platform.toStdString());
        QVERIFY(sm);
        const auto room = blockRoom(*sm, {threads, registers, shared});
        QVERIFY(room.has_value());
        QCOMPARE(room->blocks(), blocks);
        QVERIFY(room->limits() == limits);
    }

    void onlyTheCapabilitiesOfTheTable()
    {
        QCOMPARE(smLimits("sm_90a")->name(), std::string("9.0"));
        QCOMPARE(smLimits("sm120")->name(), std::string("12.0"));
        for (const char *platform : {"sm91", "sm52", "pocl", "", "sm", "gfx90"})
            QVERIFY2(!smLimits(platform), platform);
        QVERIFY(!blockRoom(*smLimits("sm90"), {0, 32, 0}));
        QVERIFY(!blockRoom(*smLimits("sm90"), {1024, 255, 0})); // does not fit at all
        QVERIFY(!blockRoom(*smLimits("sm90"), {128, 32, 1e9}));
    }

    void numbersOfATrial()
    {
        const kernel::ResolvedPlan plan = planOf({66, 2, 1}, {384, 1, 1});
        const auto all = launchNumbers(persistent(), &plan);
        QCOMPARE(all.size(), std::size_t(1));
        const LaunchNumbers &one = all.front();
        QCOMPARE((*one.grid)[1], std::int64_t(2));
        QCOMPARE((*one.block)[0], std::int64_t(384));
        QCOMPARE(*one.threadsInAll(), 132.0 * 384);
        QCOMPARE(*one.multiprocessors, 132.0);
        QVERIFY((one.limits == Limits{BlockLimit::Registers, BlockLimit::SharedMemory}));
        QCOMPARE(
            one.limitText,
            std::string(
                "Registers (168 a thread) and shared memory (225.1 KiB a block) allow no more than 1 block on a "
                "multiprocessor."));
        QCOMPARE(one.room->byThreads, 5);
    }

    /// A plan that comes to other numbers is of other sizes or tunables: it says nothing about this trial.
    void aPlanThatDisagreesIsLeftOut()
    {
        const kernel::ResolvedPlan plan = planOf({66, 1, 1}, {384, 1, 1});
        const auto all = launchNumbers(persistent(), &plan);
        QVERIFY(!all.front().grid);
        QVERIFY(all.front().block);
    }

    void whatIsMissingIsSaid()
    {
        const auto all = launchNumbers(launched({{"blocks", 10}, {"threads_per_block", 64}}));
        QVERIFY(!all.front().registers);
        QVERIFY(!all.front().staticShared); // the compiler said nothing at all
        QCOMPARE(all.front().limitText,
                 std::string("Not known: not recorded were registers and blocks a multiprocessor."));
        Trial elsewhere = persistent();
        elsewhere.environment.platform = "sm70";
        QVERIFY(launchNumbers(elsewhere).front().limitText.find("no platform sm70") != std::string::npos);
        Trial fewer = persistent();
        for (Metric &metric : fewer.metrics)
            metric.value = metric.name == "blocks_per_sm" ? 3 : metric.value;
        QVERIFY(launchNumbers(fewer).front().limits.empty());
        QVERIFY(launchNumbers(fewer).front().limitText.find("the driver said 3") != std::string::npos);
        QVERIFY(launchNumbers(Trial()).empty());
    }

    void alikeLaunchesAreCounted()
    {
        Trial trial = launched({{"registers", 32}});
        for (const double blocks : {64.0, 64.0, 8.0}) {
            trial.metrics.push_back({"blocks", blocks, "", "gemm"});
            trial.metrics.push_back({"threads_per_block", 128, "", "gemm"});
        }
        const auto all = launchNumbers(trial);
        QCOMPARE(all.size(), std::size_t(2));
        QCOMPARE(all[0].count, 2);
        QCOMPARE(*all[1].blocks, 8.0);
        QCOMPARE(*all[1].registers, 32.0);
    }

    void workGroupsOfOpenCl()
    {
        Trial trial;
        trial.surface = kernel::Surface::OpenCl;
        trial.environment.platform = "pocl";
        trial.environment.facts["compute_units"] = "8";
        trial.metrics = {{"work_groups", 64, "", "sgemm"}, {"work_group_size", 16, "", "sgemm"}};
        const auto all = launchNumbers(trial);
        QCOMPARE(*all.front().blocks, 64.0);
        QCOMPARE(*all.front().threadsInAll(), 1024.0);
        QCOMPARE(*all.front().multiprocessors, 8.0);
        QVERIFY(all.front().limitText.find("OpenCL does not say") != std::string::npos);
    }

    void rowsBesideEachOther()
    {
        Trial wide = persistent();
        for (Metric &metric : wide.metrics)
            metric.value = metric.name == "registers" ? 32 : metric.value;
        const auto rows = launchRows(launchNumbers(wide), launchNumbers(persistent()));
        QVERIFY(rowOf(rows, "Registers / thread")->differs);
        QCOMPARE(*rowOf(rows, "Registers / thread")->before.value, 32.0);
        QVERIFY(!rowOf(rows, "Blocks")->differs);
        QVERIFY(rowOf(rows, "Limited by")->differs);
        QCOMPARE(rowOf(rows, "Limited by")->after.text, std::string("registers + shared"));
        QVERIFY(!rowOf(rows, "Grid"));               // recorded on neither side
        QVERIFY(!rowOf(rows, "Launches like this")); // one each
        // What one side has alone is no difference, but said.
        const auto alone = launchRows({}, launchNumbers(persistent()));
        QCOMPARE(rowOf(alone, "Blocks")->before.text, std::string("–"));
        QVERIFY(std::none_of(alone.begin(), alone.end(), [](const LaunchRow &row) { return row.differs; }));
    }

    /// The limits explain every launch that was recorded on an H200: what the driver said is what the table allows.
    void everyRecordedLaunchIsExplained()
    {
        int launches = 0;
        const std::filesystem::path workloads =
            std::filesystem::path(klineage::test::sourcePath()) / "workloads";
        for (const auto &workload : std::filesystem::directory_iterator(workloads)) {
            const std::filesystem::path folder = workload.path() / "lineages/sm90";
            if (!std::filesystem::exists(folder / "lineage.toml"))
                continue;
            const auto lineage = lineage::readLineage(folder);
            QVERIFY(lineage.has_value());
            for (const Trial &trial : lineage->trials) {
                for (const LaunchNumbers &one : launchNumbers(trial)) {
                    ++launches;
                    QVERIFY2(!one.blocksPerSm || !one.limits.empty(),
                             (trial.file + ": " + one.limitText).c_str());
                }
            }
        }
        QVERIFY2(launches > 300, qPrintable(QString::number(launches)));
    }
};

QTEST_GUILESS_MAIN(TestLaunch)
#include "tst_launch.moc"
