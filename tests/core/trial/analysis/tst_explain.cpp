// SPDX-License-Identifier: GPL-3.0-or-later
// Causes ranked from planted figures, and what is said when there are none.
#include "core/trial/analysis/explain/explaintext.h"
#include "core/trial/analysis/explain/waits.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <algorithm>
#include <cmath>
#include <random>

using namespace klineage;
using namespace klineage::gate;

namespace {

constexpr double us = 1e3;

using Stalls = std::map<std::string, std::int64_t>;

Trial timed(double ns)
{
    Trial trial;
    trial.surface = kernel::Surface::Cuda;
    trial.environment = {"sm90", "NVIDIA H200", {{"sm_count", "132"}}};
    trial.verdict.status = VerdictStatus::Correct;
    trial.latencyNs = {ns, 0.999 * ns, 1.001 * ns};
    trial.metrics = {{"registers", 64, "", "gemm"}, {"blocks", 100, "", "gemm"}};
    return trial;
}

/// One kernel that takes all of the time, with warps on all multiprocessors; the stalls are those of its line 10.
Trial sampled(double ns, const Stalls &stalls)
{
    Trial trial = timed(ns);
    trial.metrics.push_back({"kernel_time", ns, "ns", "gemm"});
    trial.metrics.push_back({"sm_active", 100, "%", "gemm"});
    Hotspot spot{"gemm", 10, 0, stalls};
    for (const auto &[reason, count] : stalls)
        spot.samples += count;
    trial.hotspots = {spot};
    return trial;
}

Comparison paired(double otherNs, double ns)
{
    Comparison comparison;
    comparison.against = "parent";
    comparison.speedup = {otherNs / ns, 0.99 * otherNs / ns, 1.01 * otherNs / ns};
    comparison.otherNs = otherNs;
    return comparison;
}

Explanation explained(const Trial &before, const Trial &after, const SameLines &same = {})
{
    const Comparison comparison = paired(before.latencyNs.value, after.latencyNs.value);
    return explainStep({"K07", before}, {"K08", after}, &comparison, same);
}

const Cause *causeOf(const Explanation &explanation, const std::string &group)
{
    const auto found = std::find_if(explanation.causes.begin(), explanation.causes.end(),
                                    [&](const Cause &cause) { return cause.group == group; });
    return found == explanation.causes.end() ? nullptr : &*found;
}

bool isNear(double a, double b, double most = 1e-9)
{
    return std::abs(a - b) <= most;
}

} // namespace

class TestExplain : public QObject
{
    Q_OBJECT

private slots:
    /// 41 % of 200 µs waited for memory, 8 % of 100 µs do: 74 of the 100 µs that were won.
    void aPlantedWaitIsFound()
    {
        Trial before = sampled(200 * us, {{"long_scoreboard", 41}, {"selected", 59}});
        Trial after = sampled(100 * us, {{"long_scoreboard", 8}, {"selected", 92}});
        for (Trial *trial : {&before, &after})
            trial->metrics.push_back({"stall_long_scoreboard", trial == &before ? 40.5 : 7.9, "%", "gemm"});
        const Explanation out = explained(before, after);
        QCOMPARE(out.source, TimeSource::Samples);
        QVERIFY(out.paired);
        QCOMPARE(out.causes.size(), std::size_t(2));
        const Cause &cause = out.causes.front();
        QCOMPARE(cause.group, std::string("memory"));
        QCOMPARE(cause.reason, std::string("long_scoreboard"));
        QCOMPARE(cause.kernel, std::string("gemm"));
        QCOMPARE(cause.metric, std::string("stall_long_scoreboard"));
        QVERIFY(isNear(cause.before, 0.41) && isNear(cause.after, 0.08));
        QVERIFY(isNear(cause.deltaNs(), -74 * us, 1e-6));
        QVERIFY(isNear(cause.shareOfDifference, 0.74));
        QCOMPARE(
            causeText(cause),
            std::string("41 % of the time before, 8.0 % after: 74 µs less, about 74 % of the difference."));
        QVERIFY(isNear(out.together, 1));
        const std::string text = explanationText(out);
        QVERIFY2(text.starts_with(
                     "K08 is 2 times as fast as K07 (paired rounds, 95 % interval 1.98 to 2.02): 200 µs, "
                     "then 100 µs, 100 µs less.\n"),
                 text.c_str());
    }

    /// A full load/store queue is not slow memory: another part, with another remedy.
    void aFullQueueIsAPartOfItsOwn()
    {
        const Explanation out = explained(sampled(200 * us, {{"lg_throttle", 60}, {"long_scoreboard", 40}}),
                                          sampled(100 * us, {{"lg_throttle", 2}, {"long_scoreboard", 98}}));
        QCOMPARE(out.causes.front().group, std::string("queue"));
        QCOMPARE(out.causes.front().title,
                 std::string("Waiting for room in the load/store and texture queues"));
        for (const TimeGroup &group : timeGroups()) {
            for (const char *reason : group.reasons)
                QCOMPARE(groupOfReason(reason), std::string(group.id)); // in one group alone
        }
    }

    /// A figure that reads the same on both sides is no change.
    void whatRoundsToNothingIsLeftOut()
    {
        Trial before = sampled(200 * us, {{"long_scoreboard", 41}, {"selected", 59}});
        Trial after = sampled(100 * us, {{"long_scoreboard", 8}, {"selected", 92}});
        for (Trial *trial : {&before, &after}) {
            const double little = trial == &before ? 0.01 : 0.04; // both read 0.0 %
            trial->metrics.push_back({"stall_long_scoreboard", little, "%", "gemm"});
            trial->metrics.push_back({"tensor_active", little, "%", "gemm"});
        }
        const Explanation out = explained(before, after);
        QVERIFY(out.causes.front().metric != "stall_long_scoreboard");
        const std::string text = explanationText(out);
        QVERIFY2(text.find("0.0 % → 0.0 %") == std::string::npos, text.c_str());
    }

    /// Of four parts that changed, the three largest; and the rest is not said to be explained.
    void threeLargestOfFour()
    {
        const Explanation out = explained(
            sampled(1000 * us, {{"barrier", 400}, {"mio_throttle", 300}, {"wait", 200}, {"selected", 100}}),
            sampled(100 * us, {{"barrier", 25}, {"mio_throttle", 25}, {"wait", 25}, {"selected", 25}}));
        QCOMPARE(out.causes.size(), std::size_t(3));
        QCOMPARE(out.causes[0].group, std::string("barriers"));
        QCOMPARE(out.causes[1].group, std::string("shared"));
        QCOMPARE(out.causes[2].group, std::string("latency"));
        QVERIFY(isNear(out.together, (375.0 + 275 + 175) / 900));
        QCOMPARE(togetherText(out),
                 std::string("The three largest causes are together about 92 % of the difference."));
    }

    /// What grew meanwhile makes the causes more than all of the difference, and that is said.
    void moreThanAllIsSaid()
    {
        const Explanation out = explained(sampled(200 * us, {{"barrier", 90}, {"long_scoreboard", 10}}),
                                          sampled(100 * us, {{"barrier", 10}, {"long_scoreboard", 90}}));
        QCOMPARE(out.causes.size(), std::size_t(1));
        QVERIFY(isNear(out.causes[0].shareOfDifference, 1.7));
        QCOMPARE(out.against.size(), std::size_t(1));
        QCOMPARE(
            togetherText(out),
            std::string(
                "The largest cause is about 170 % of the difference, more than all of it: other parts changed the other way. "
                "Meanwhile grew “Waiting for global or local memory” by 70 µs."));
    }

    /// A step backwards is explained by what grew.
    void aLossIsExplainedByWhatGrew()
    {
        const Explanation out = explained(sampled(100 * us, {{"selected", 100}}),
                                          sampled(150 * us, {{"selected", 60}, {"barrier", 40}}));
        QCOMPARE(out.causes.size(), std::size_t(1));
        QCOMPARE(out.causes[0].group, std::string("barriers"));
        QVERIFY(isNear(out.causes[0].deltaNs(), 60 * us, 1e-6));
        QVERIFY(isNear(out.causes[0].shareOfDifference, 1.2));
        QVERIFY(stepText(out).find("50 µs more") != std::string::npos);
    }

    /// Time without warps and time between kernels are parts like the others.
    void idleAndOutside()
    {
        Trial before = sampled(100 * us, {{"selected", 100}});
        for (Metric &metric : before.metrics)
            metric.value = metric.name == "kernel_time" ? 80 * us
                           : metric.name == "sm_active" ? 25
                                                        : metric.value;
        const Explanation out = explained(before, sampled(20 * us, {{"selected", 100}}));
        QVERIFY(isNear(causeOf(out, idleGroup)->deltaNs(), -60 * us, 1e-6));
        QVERIFY(isNear(causeOf(out, outsideGroup)->deltaNs(), -20 * us, 1e-6));
        QVERIFY(causeOf(out, outsideGroup)->kernel.empty());
        QVERIFY(!causeOf(out, "issue")); // 20 µs on both sides
        QVERIFY(isNear(out.together, 1));
    }

    /// Both trials are divided alike: by what the poorer one has.
    void theCoarserSourceDecides()
    {
        Trial before = sampled(200 * us, {{"barrier", 50}, {"selected", 50}});
        Trial after = sampled(100 * us, {{"selected", 100}});
        before.hotspots.clear();
        for (Trial *trial : {&before, &after}) {
            for (const auto &[name, value] :
                 {std::pair{"stall_long_scoreboard", 10.0}, std::pair{"stall_selected", 40.0}})
                trial->metrics.push_back({name, value, "%", "gemm"});
        }
        before.metrics.push_back({"stall_barrier", 30, "%", "gemm"});
        const Explanation counted = explained(before, after);
        QCOMPARE(counted.source, TimeSource::StallCounters);
        QVERIFY(isNear(causeOf(counted, "barriers")->before, 0.3));
        QVERIFY(causeOf(counted, "barriers")->lines.empty());
        std::erase_if(before.metrics, [](const Metric &metric) { return metric.name.starts_with("stall_"); });
        const Explanation coarse = explained(before, after);
        QCOMPARE(coarse.source, TimeSource::Activity);
        QCOMPARE(coarse.causes.front().group, std::string(busyGroup));
    }

    void linesThatMoved()
    {
        Trial before = sampled(200 * us, {{"barrier", 50}});
        before.hotspots.push_back({"gemm", 20, 40, {{"barrier", 40}}});
        before.hotspots.push_back({"gemm", 0, 10, {{"barrier", 10}}}); // from a header
        Trial after = sampled(100 * us, {{"barrier", 20}});
        after.hotspots.front().line = 12;
        after.hotspots.push_back({"gemm", 30, 80, {{"selected", 80}}});
        SameLines same(41, 0);
        same[10] = 12; // line 10 is line 12 now; line 20 is gone
        const Explanation out = explained(before, after, same);
        const std::vector<MovedLine> &lines = out.causes.front().lines;
        QCOMPARE(lines.size(), std::size_t(2));
        QCOMPARE(lines[0].before, 10); // 100 µs, then 20 µs
        QCOMPARE(lines[0].after, 12);
        QVERIFY(isNear(lines[0].deltaNs, -80 * us, 1e-6));
        QCOMPARE(lines[0].side(), 1);
        QCOMPARE(lines[1].line(), 20);
        QCOMPARE(lines[1].side(), 0);
        QCOMPARE(lineText(lines[0], out), std::string("line 12 of K08, 80 µs less"));
        QCOMPARE(lineText(lines[1], out), std::string("line 20 of K07, which is gone, 80 µs less"));
        // Sources that were not compared say nothing about lines.
        QVERIFY(explained(before, after).causes.front().lines.empty());
    }

    void tooLittleRanksNothing_data()
    {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("says");
        QTest::newRow("no counters before") << "before"
                                            << "Missing are hardware counters and stall samples of K07, so";
        QTest::newRow("none at all") << "both"
                                     << "of K07 and K08, so nothing says where the time went";
        QTest::newRow("no time") << "untimed"
                                 << "The trial of K07 has no time.";
        QTest::newRow("no difference") << "same"
                                       << "The paired rounds show no difference";
        QTest::newRow("OpenCL") << "opencl"
                                << "no counters and no stall samples on OpenCL";
    }

    void tooLittleRanksNothing()
    {
        QFETCH(QString, what);
        QFETCH(QString, says);
        const Stalls stalls{{"barrier", 50}, {"selected", 50}};
        Trial before = what == "before" || what == "both" || what == "opencl" ? timed(200 * us)
                                                                              : sampled(200 * us, stalls);
        Trial after = what == "both" || what == "opencl" ? timed(100 * us) : sampled(100 * us, stalls);
        if (what == "opencl")
            before.surface = after.surface = kernel::Surface::OpenCl;
        if (what == "untimed")
            before.latencyNs = {};
        Comparison comparison = paired(200 * us, 100 * us);
        if (what == "same")
            comparison.speedup = {1.001, 0.99, 1.01};
        const Explanation out = explainStep({"K07", before}, {"K08", after}, &comparison);
        QVERIFY(out.causes.empty());
        QVERIFY2(QString::fromStdString(out.nothing).contains(says), out.nothing.c_str());
        QCOMPARE(out.kept.size(), std::size_t(2));
        QVERIFY(togetherText(out).empty());
        const nlohmann::json json = explanationJson(out);
        QVERIFY(json["causes"].empty() && json["together"].is_null() && json["nothing"].is_string());
        if (what == "before")
            QCOMPARE(
                out.kept[0],
                std::string("The trial of K07 kept its time, registers and shared memory and the numbers of "
                            "its launches."));
    }

    void whatIsNotPairedSaysSo()
    {
        const Trial before = sampled(200 * us, {{"barrier", 100}});
        const Trial after = sampled(100 * us, {{"barrier", 100}});
        const Explanation out = explainStep({"K05", before}, {"K08", after}, nullptr);
        QVERIFY(!out.paired);
        QVERIFY(stepText(out).find("not paired") != std::string::npos);
        QVERIFY(out.cautions.front().starts_with("The two were not timed side by side"));
        QVERIFY(out.speedup.low < 2 && out.speedup.high > 2);
        QVERIFY(explained(before, after).cautions.front().starts_with("Shares are estimates"));
    }

    void figuresThatChanged()
    {
        Trial before = sampled(200 * us, {{"selected", 100}});
        Trial after = sampled(100 * us, {{"selected", 100}});
        before.metrics.push_back({"dram_bytes", 4e8, "B", "gemm"});
        after.metrics.push_back({"dram_bytes", 2e8, "B", "gemm"});
        after.metrics.push_back({"dram_bytes", 1e8, "B", "reduce"});
        const Explanation out = explained(before, after);
        QCOMPARE(out.figures.size(), std::size_t(0 + 1));
        QCOMPARE(*out.figures[0].before, 4e8);
        QCOMPARE(*out.figures[0].after, 3e8); // an amount: of all kernels
        QCOMPARE(metricText(61.86, "%"), std::string("61.9 %"));
        QCOMPARE(metricText(3.932e9, ""), std::string("3.932 G"));
        QCOMPARE(metricText(126, ""), std::string("126"));
    }

    /// Whatever was recorded: the parts add up to the run, the causes and what is against them to no more than the difference, and causes
    /// that are more than all of it say so.
    void sharesNeverExceedTheDifferenceInSilence()
    {
        std::mt19937 random(7);
        std::uniform_int_distribution<int> count(0, 1000);
        std::uniform_real_distribution<double> part(0.05, 1);
        const char *reasons[] = {"long_scoreboard", "lg_throttle", "barrier", "wait",
                                 "selected",        "gmma",        "unheard", "mio_throttle"};
        int more = 0;
        int opposed = 0;
        for (int i = 0; i < 500; ++i) {
            const auto draw = [&] {
                Stalls stalls{{"selected", 1}};
                for (const char *reason : reasons)
                    stalls[reason] += count(random);
                Trial trial = sampled(100 * us * (0.2 + part(random)), stalls);
                for (Metric &metric : trial.metrics)
                    metric.value *=
                        metric.name == "kernel_time" || metric.name == "sm_active" ? part(random) : 1;
                const TimeParts parts = timeParts(trial, finestSource(trial));
                double whole = 0;
                for (const auto &[group, one] : parts.groups)
                    whole += one.share;
                if (!isNear(whole, 1))
                    qFatal("the parts of trial %d are %f of it", i, whole);
                return trial;
            };
            const Explanation out = explained(draw(), draw());
            if (out.causes.empty())
                continue;
            double sum = 0;
            for (const Cause &cause : out.causes) {
                QVERIFY(cause.shareOfDifference > 0);
                QVERIFY(cause.deltaNs() * out.differenceNs() > 0);
                sum += cause.shareOfDifference;
            }
            QVERIFY(out.causes.size() <= 3);
            QVERIFY(std::is_sorted(out.causes.begin(), out.causes.end(), [](const Cause &a, const Cause &b) {
                return a.shareOfDifference > b.shareOfDifference;
            }));
            QVERIFY(isNear(sum, out.together));
            const bool says = togetherText(out).find("more than all of it") != std::string::npos;
            QCOMPARE(says, sum > 1);
            QCOMPARE(says, explanationText(out).find("more than all of it") != std::string::npos);
            more += says ? 1 : 0;
            opposed += out.against.empty() ? 0 : 1;
        }
        QVERIFY(more > 20 && opposed > 20); // both kinds were drawn
    }

    void everyGroupHasItsOwnReasons()
    {
        std::set<std::string> ids;
        std::set<std::string> seen;
        for (const TimeGroup &group : timeGroups()) {
            QVERIFY2(ids.insert(group.id).second, std::string(group.id).c_str());
            for (const char *reason : group.reasons) {
                QVERIFY2(seen.insert(reason).second, reason);
                QCOMPARE(groupOfReason(reason), std::string(group.id));
            }
        }
        QCOMPARE(groupOfReason("misc"), std::string(otherGroup));
        QCOMPARE(metricOfReason("no_instructions"), std::string("stall_no_instruction"));
    }
};

QTEST_GUILESS_MAIN(TestExplain)
#include "tst_explain.moc"
