// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/linesamples.h"

#include <QtTest>

#include <limits>

using namespace klineage::gate;

namespace {

Trial sampled()
{
    Trial trial;
    trial.hotspots = {
        {"first", 40, 600, {{"long_scoreboard", 500}, {"wait", 60}, {"selected", 40}}},
        {"second", 12, 200, {{"barrier", 150}, {"selected", 50}}},
        {"second", 40, 100, {{"barrier", 70}, {"wait", 30}}},
        {"first", 0, 60, {{"wait", 60}}}, // from a header
        {"first", 41, 40, {{"selected", 40}}},
    };
    return trial;
}

} // namespace

class TestLineSamples : public QObject
{
    Q_OBJECT

private slots:
    void noneOfATrialWithoutThem()
    {
        const LineSamples none{Trial{}};
        QVERIFY(none.isEmpty());
        QCOMPARE(none.in({1, 1000}), std::int64_t{0});
        QCOMPARE(none.share({1, 1000}), 0.0);
        QCOMPARE(none.hottest({1, 1000}), 0);
        QVERIFY(none.stalls({1, 1000}).empty());
    }

    void linesOfAllKernelsAreSummed()
    {
        const LineSamples samples(sampled());
        QCOMPARE(samples.total(), std::int64_t{1000});
        QCOMPARE(samples.kernelCount(), 2);
        QCOMPARE(samples.in({40, 1}), std::int64_t{700});
        QCOMPARE(samples.share({40, 1}), 0.7);
        QCOMPARE(samples.in({13, 27}), std::int64_t{0});
        QCOMPARE(samples.in({12, 29}), std::int64_t{900});
        QCOMPARE(samples.in({1, 100}), std::int64_t{940}); // not those of the header
        QCOMPARE(samples.in({40, 0}), std::int64_t{0});
        QCOMPARE(samples.in({500, 10}), std::int64_t{0});
    }

    void stallsAreOrderedAndIssuingIsNone()
    {
        const LineSamples samples(sampled());
        const auto stalls = samples.stalls({12, 29});
        QCOMPARE(stalls.size(), std::size_t(3));
        QCOMPARE(stalls[0].reason, std::string("long_scoreboard"));
        QCOMPARE(stalls[0].samples, std::int64_t{500});
        QCOMPARE(stalls[1].reason, std::string("barrier"));
        QCOMPARE(stalls[1].samples, std::int64_t{220});
        QCOMPARE(stalls[2].samples, std::int64_t{90});
        QCOMPARE(samples.issued({12, 29}), std::int64_t{90});
        QCOMPARE(samples.hottest({1, 100}), 40);
        QCOMPARE(samples.hottest({41, 100}), 41);
        QCOMPARE(samples.hottest({42, 100}), 0);
    }

    /// A trial lists its hottest lines; what it says of all counts.
    void allSamplesCount()
    {
        Trial trial = sampled();
        trial.metrics.push_back({"pc_samples", 2000, "", ""});
        QCOMPARE(LineSamples(trial).total(), std::int64_t{2000});
        QCOMPARE(LineSamples(trial).share({40, 1}), 0.35);
        trial.metrics.back().value = 10; // older than the list, or wrong
        QCOMPARE(LineSamples(trial).total(), std::int64_t{1000});
    }

    void hostileFiguresDoNoHarm()
    {
        Trial trial = sampled();
        const auto most = std::numeric_limits<std::int64_t>::max();
        trial.hotspots.push_back({"first", std::numeric_limits<int>::max(), most, {{"wait", most}}});
        trial.hotspots.push_back({"first", 7, most, {{"wait", most}}});
        trial.hotspots.push_back({"first", 8, most, {{"wait", most}}});
        const LineSamples samples(trial);
        QVERIFY(samples.total() > 0);
        QVERIFY(samples.in({7, 2}) > 0);
        QVERIFY(samples.share({7, 2}) < 1);
        QVERIFY(samples.in({std::numeric_limits<int>::max() - 1, 1}) == 0);
    }

    void reasonsHaveWords()
    {
        QCOMPARE(stallInWords("long_scoreboard"), std::string("global, local or texture memory"));
        QCOMPARE(stallInWords("a_new_one"), std::string("a_new_one"));
        QCOMPARE(stallInBrief("long_scoreboard"), std::string("global memory"));
    }
};

QTEST_GUILESS_MAIN(TestLineSamples)
#include "tst_linesamples.moc"
