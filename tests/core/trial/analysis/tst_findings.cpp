// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/analysis.h"
#include "core/trial/metricnames.h"
#include "tests/paths.h"

#include <nlohmann/json.hpp>

#include <QFile>
#include <QSet>
#include <QTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

constexpr double us = 1e3;

/// 64 µs on something like an H200: 16.8 MFLOP and 134 MB, so 2.1 TB/s.
Trial gpuTrial()
{
    Trial trial;
    trial.surface = kernel::Surface::Cuda;
    trial.environment.platform = "sm90";
    trial.latencyNs = {64 * us, 64 * us, 64 * us};
    trial.achievedFlops = 262e9;
    trial.achievedBytes = 2.1e12;
    return trial;
}

/// A product in bf16 that reaches 300 TFLOP/s with 1365 FLOP/B.
Trial tensorTrial()
{
    Trial trial = gpuTrial();
    trial.achievedFlops = 300e12;
    trial.achievedBytes = 300e12 / 1365;
    return trial;
}

Trial cpuTrial()
{
    Trial trial;
    trial.surface = kernel::Surface::OpenCl;
    trial.environment.platform = "pocl";
    trial.environment.facts["compute_units"] = "8";
    trial.latencyNs = {400 * us, 390 * us, 410 * us};
    trial.achievedFlops = 3e9;
    trial.achievedBytes = 18e9;
    return trial;
}

Roof gpuRoof()
{
    Roof roof;
    roof.bandwidth = 4.2e12;
    roof.peak = 790e12;
    roof.peakName = "bf16";
    roof.fp32 = 60e12;
    roof.launchNs = 1.8 * us;
    return roof;
}

Roof cpuRoof()
{
    Roof roof;
    roof.bandwidth = 25e9;
    roof.peak = 150e9;
    roof.peakName = "fp32";
    roof.fp32 = 150e9;
    roof.launchNs = 12 * us;
    return roof;
}

Trial with(Trial trial, std::initializer_list<std::pair<const char *, double>> metrics,
           const std::string &kernel = "k")
{
    for (const auto &[name, value] : metrics)
        trial.metrics.push_back({name, value, "", kernel});
    return trial;
}

struct Sample {
    const char *about;
    const char *tool;
    Trial trial;
    Roof roof;
};

Trial slower(Trial trial, double times)
{
    trial.achievedFlops /= times;
    trial.achievedBytes /= times;
    return trial;
}

Trial shortRun(Trial trial, double ns)
{
    trial.latencyNs = {ns, ns, ns};
    return trial;
}

/// One that makes each sentence of each tool.
std::vector<Sample> samples()
{
    using namespace metric;
    const Trial g = gpuTrial();
    const Trial t = tensorTrial();
    const Trial c = cpuTrial();
    const Roof gr = gpuRoof();
    const Roof cr = cpuRoof();
    return {
        {"far below both limits", "ceiling", slower(c, 5), cr},
        {"near the bandwidth", "ceiling", slower(g, 0.55), gr},
        {"near the rate", "ceiling", slower(t, 0.4), gr},
        {"one launch of a tiny run", "launch-overhead", with(shortRun(g, 5 * us), {{blocks, 4}}), gr},
        {"several launches", "launch-overhead",
         with(with(shortRun(c, 90 * us), {{"work_groups", 64}}, "a"), {{"work_groups", 64}}, "b"), cr},
        {"fewer work-items than lanes", "work-group-size",
         with(c, {{"work_group_size", 1}, {"preferred_multiple", 8}}), cr},
        {"a last vector that is not full", "work-group-size",
         with(c, {{"work_group_size", 20}, {"preferred_multiple", 8}}), cr},
        {"idle compute units", "work-groups", with(c, {{"work_groups", 3}}), cr},
        {"an uneven last round", "work-groups", with(c, {{"work_groups", 9}}), cr},
        {"local memory of a CPU", "local-memory", with(c, {{"local_mem", 4096}}), cr},
        {"arrays in memory", "private-memory", with(c, {{"private_mem", 16384}}), cr},
        {"too few blocks", "waves", with(g, {{waves, 0.24}, {blocks, 32}}), gr},
        {"a nearly empty last wave", "waves", with(g, {{waves, 1.09}, {blocks, 1152}}), gr},
        {"limited by shared memory", "occupancy",
         with(g, {{theoreticalOccupancy, 18.75},
                  {blocksPerSm, 1},
                  {threadsPerBlock, 384},
                  {dynamicShared, 230400}}),
         gr},
        {"limited by registers", "occupancy",
         with(g, {{theoreticalOccupancy, 25}, {blocksPerSm, 2}, {threadsPerBlock, 256}, {registers, 128}}),
         gr},
        {"limited by the size of blocks", "occupancy",
         with(g, {{theoreticalOccupancy, 25}, {blocksPerSm, 16}, {threadsPerBlock, 32}, {registers, 24}}),
         gr},
        {"less than could be", "occupancy",
         with(g, {{theoreticalOccupancy, 100}, {warpsActive, 31}, {blocksPerSm, 8}, {threadsPerBlock, 256}}),
         gr},
        {"many registers", "registers", with(g, {{registers, 168}}), gr},
        {"spilled registers", "spills",
         with(g, {{"spill_stores", 96}, {"spill_loads", 128}, {stallLongScoreboard, 22}}), gr},
        {"no shared memory", "tiling", with(t, {{staticShared, 0}, {dynamicShared, 0}}), gr},
        {"loads apart", "coalescing", with(g, {{sectorsPerLoad, 31.6}, {l1HitRate, 12}}), gr},
        {"stores apart", "store-coalescing", with(g, {{sectorsPerStore, 24}}), gr},
        {"arrays in local memory", "local-access",
         with(g, {{localLoads, 2.1e6}, {localStores, 0}, {stallLongScoreboard, 35}}), gr},
        {"waiting for memory", "stalls", with(g, {{stallLongScoreboard, 71}}), gr},
        {"waiting for shared memory", "stalls",
         with(g, {{stallLongScoreboard, 8}, {stallShortScoreboard, 45}}), gr},
        {"waiting at barriers", "barriers", with(g, {{stallBarrier, 38}}), gr},
        {"one bank for all", "bank-conflicts", with(g, {{bankConflicts, 7e5}, {sharedWavefronts, 1e6}}), gr},
        {"tensor cores unused", "tensor-cores", with(t, {{tensorActive, 0}}), gr},
        {"tensor cores waiting", "tensor-cores", with(t, {{tensorActive, 34}}), gr},
        {"too many instructions", "instruction-issue", with(g, {{issueActive, 88}}), gr},
        {"memory is the limit", "dram", with(g, {{dramThroughput, 92}}), gr},
        {"operands read again and again", "l2", with(g, {{l2HitRate, 31}, {dramBytes, 500e6}}), gr},
        {"time between kernels", "gaps",
         with(with(g, {{kernelTime, 20 * us}}, "a"), {{kernelTime, 21 * us}}, "b"), gr},
    };
}

/// Nothing of this deserves a word.
Trial quietTrial()
{
    using namespace metric;
    Trial trial = with(slower(gpuTrial(), 0.7), {{blocks, 132 * 8},
                                                 {waves, 1},
                                                 {theoreticalOccupancy, 100},
                                                 {warpsActive, 93},
                                                 {registers, 32},
                                                 {staticShared, 0},
                                                 {dynamicShared, 4096},
                                                 {sectorsPerLoad, 16},
                                                 {sectorsPerStore, 4},
                                                 {l1HitRate, 2},
                                                 {localLoads, 0},
                                                 {localStores, 0},
                                                 {stallLongScoreboard, 30},
                                                 {stallBarrier, 2},
                                                 {bankConflicts, 0},
                                                 {sharedWavefronts, 1e6},
                                                 {tensorActive, 0},
                                                 {issueActive, 20},
                                                 {dramThroughput, 70},
                                                 {l2HitRate, 34},
                                                 {dramBytes, 135e6},
                                                 {kernelTime, 61 * us},
                                                 {"spill_stores", 0}});
    return trial;
}

} // namespace

class TestFindings : public QObject
{
    Q_OBJECT

private slots:
    void everySentence();
    void everyToolHasASample();
    void quiet();
    void missingMetrics();
    void classes_data();
    void classes();
    void json();
    void text();
    void findingsLeadToFiguresAndLines();
};

/// A stall finding is about its own metric; its lines are those of the kernel where samples have that reason.
void TestFindings::findingsLeadToFiguresAndLines()
{
    Trial trial = gpuTrial();
    const auto add = [&](const char *name, double value) {
        trial.metrics.push_back({name, value, "%", "k"});
    };
    add(metric::stallLongScoreboard, 5);
    add(metric::stallShortScoreboard, 55);
    add(metric::stallBarrier, 35);
    trial.hotspots = {{"k", 12, 600, {{"short_scoreboard", 500}, {"barrier", 100}}},
                      {"k", 14, 200, {{"barrier", 150}, {"selected", 50}}},
                      {"other", 14, 150, {{"short_scoreboard", 150}}},
                      {"k", 0, 46, {{"short_scoreboard", 46}}},
                      {"k", 20, 4, {{"short_scoreboard", 4}}}};
    const auto of = [&](const char *tool) {
        const Analysis analysis = analyse(trial, std::nullopt);
        for (const ToolFinding &finding : analysis.findings) {
            if (finding.tool == tool)
                return finding;
        }
        return ToolFinding();
    };
    const ToolFinding stalls = of("stalls");
    QCOMPARE(stalls.metric, std::string(metric::stallShortScoreboard));
    QCOMPARE(stalls.lines.size(),
             std::size_t(1)); // 0.4 % is none, line 0 is elsewhere, the other kernel is another
    QCOMPARE(stalls.lines[0].line, 12);
    QCOMPARE(stalls.lines[0].share, 0.5);
    const ToolFinding barriers = of("barriers");
    QCOMPARE(barriers.metric, std::string(metric::stallBarrier));
    QCOMPARE(barriers.lines.size(), std::size_t(2));
    QCOMPARE(barriers.lines[0].line, 14);
    QCOMPARE(barriers.lines[1].line, 12);
    const nlohmann::json out = analysisJson(analyse(trial, std::nullopt));
    bool found = false;
    for (const auto &finding : out["findings"])
        found = found || (finding["metric"] == metric::stallBarrier && finding["lines"][0]["line"] == 14);
    QVERIFY(found);
    trial.hotspots.clear();
    QVERIFY(of("stalls").lines.empty());
}

void TestFindings::everySentence()
{
    QString lines;
    for (const Sample &sample : samples()) {
        const Analysis analysis = analyse(sample.trial, sample.roof);
        QString found = "(nothing)";
        for (const ToolFinding &finding : analysis.findings) {
            if (finding.tool == sample.tool)
                found = QString::fromStdString(finding.text);
        }
        lines += QString("%1 (%2)\n    %3\n").arg(sample.tool, sample.about, found);
    }
    // For whoever changes a sentence: what is said now, to be read and put in place of the golden file.
    QFile said(QString::fromStdString(klineage::test::programPath("/tests/findings.txt")));
    QVERIFY(said.open(QIODevice::WriteOnly));
    said.write(lines.toUtf8());
    said.close();
    QFile golden(
        QString::fromStdString(klineage::test::sourcePath("/tests/core/trial/analysis/findings.txt")));
    QVERIFY(golden.open(QIODevice::ReadOnly));
    const QStringList expected = QString::fromUtf8(golden.readAll()).split('\n');
    const QStringList got = lines.split('\n');
    for (qsizetype i = 0; i < std::min(expected.size(), got.size()); ++i)
        QCOMPARE(got[i], expected[i]);
    QCOMPARE(got.size(), expected.size());
}

void TestFindings::everyToolHasASample()
{
    QSet<QString> sampled;
    for (const Sample &sample : samples())
        sampled.insert(sample.tool);
    for (const auto surface : {kernel::Surface::Cuda, kernel::Surface::OpenCl}) {
        for (const std::string &name : toolNames(surface))
            QVERIFY2(sampled.contains(QString::fromStdString(name)), name.c_str());
    }
}

void TestFindings::quiet()
{
    const Analysis analysis = analyse(quietTrial(), gpuRoof());
    for (const ToolFinding &finding : analysis.findings)
        QFAIL((finding.tool + ": " + finding.text).c_str());
    QVERIFY(analysis.notMeasured.empty());
}

void TestFindings::missingMetrics()
{
    const Analysis analysis = analyse(gpuTrial(), std::nullopt);
    QVERIFY(analysis.findings.empty());
    QCOMPARE(analysis.notMeasured.size(), toolNames(kernel::Surface::Cuda).size());
    QCOMPARE(toString(analysis.classification.bound), "unknown");
    QVERIFY(analysis.classification.reason.starts_with("Not measured"));
}

void TestFindings::classes_data()
{
    QTest::addColumn<double>("intensity");
    QTest::addColumn<double>("bandwidthShare");
    QTest::addColumn<double>("dram");
    QTest::addColumn<double>("issue");
    QTest::addColumn<QString>("bound");
    QTest::addColumn<QString>("counters");
    QTest::addColumn<QString>("ends");

    QTest::newRow("memory") << 0.6 << 0.9 << -1. << -1. << "memory"
                            << "unknown"
                            << "bf16 rate.";
    QTest::newRow("compute") << 1365. << 0.1 << -1. << -1. << "compute"
                             << "unknown"
                             << "bf16 rate.";
    QTest::newRow("near the ridge") << 200. << 0.5 << -1. << -1. << "mixed"
                                    << "unknown"
                                    << "bf16 rate.";
    QTest::newRow("neither") << 0.6 << 0.05 << -1. << -1. << "latency"
                             << "unknown"
                             << "bf16 rate.";
    QTest::newRow("agree") << 0.6 << 0.9 << 91. << 20. << "memory"
                           << "memory"
                           << "(busy: from 60 %).";
    QTest::newRow("differ") << 0.6 << 0.4 << 44. << 20. << "memory"
                            << "latency"
                            << "the analytic side is trusted.";
    QTest::newRow("both busy") << 0.6 << 0.9 << 70. << 80. << "memory"
                               << "mixed"
                               << "the analytic side is trusted.";
    QTest::newRow("no operations") << 0. << 0.9 << 20. << 80. << "compute"
                                   << "compute"
                                   << "are not known.";
}

void TestFindings::classes()
{
    QFETCH(double, intensity);
    QFETCH(double, bandwidthShare);
    QFETCH(double, dram);
    QFETCH(double, issue);
    QFETCH(QString, bound);
    QFETCH(QString, counters);
    QFETCH(QString, ends);

    Trial trial = gpuTrial();
    trial.achievedBytes = bandwidthShare * gpuRoof().bandwidth;
    trial.achievedFlops = intensity * trial.achievedBytes;
    if (dram >= 0)
        trial = with(trial, {{metric::dramThroughput, dram}, {metric::issueActive, issue}});
    const Analysis analysis = analyse(trial, gpuRoof());
    QCOMPARE(toString(analysis.classification.bound), bound);
    QCOMPARE(toString(analysis.classification.counters), counters);
    QVERIFY2(QString::fromStdString(analysis.classification.reason).endsWith(ends),
             analysis.classification.reason.c_str());
}

void TestFindings::json()
{
    Trial trial = with(gpuTrial(), {{metric::registers, 168}}, "gemm");
    Environment &environment = trial.environment;
    environment.facts = {{"roofline_bandwidth", "4200000000000"},
                         {"roofline_precision", "half"},
                         {"roofline_flops_bf16", "790000000000000"}};
    const nlohmann::json out = analysisJson(analyse(trial));
    QCOMPARE(out.at("class").get<std::string>(), std::string("memory"));
    QVERIFY(std::abs(out.at("ridge").get<double>() - 188.1) < 0.1);
    QCOMPARE(out.at("findings").back().at("kernel").get<std::string>(), std::string("gemm"));
    QCOMPARE(out.at("not_measured").front().at("why").get<std::string>(), std::string("needs counters"));
}

void TestFindings::text()
{
    const std::string text = analysisText(analyse(with(cpuTrial(), {{"work_groups", 3}}), cpuRoof()));
    QCOMPARE(
        QString::fromStdString(text),
        QStringLiteral(
            "Bound by: memory. 0.167 FLOP/B against a measured ridge of 6; it reaches 72 % of the measured bandwidth and "
            "2.0 % of the measured fp32 rate.\n"
            "- work-groups of k: There are 3 work-groups for 8 compute units: the others stay idle.\n"
            "Not measured (needs counters): work-group-size, local-memory, private-memory.\n"));
}

QTEST_GUILESS_MAIN(TestFindings)
#include "tst_findings.moc"
