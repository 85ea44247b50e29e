// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/statistics.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace klineage::gate;

namespace {

/// Paired ratios as a session gives them: a true ratio, small symmetric noise, and now and then an interrupted sample.
std::vector<double> syntheticRatios(double truth, double sigma, std::size_t rounds, std::mt19937_64 &random)
{
    std::normal_distribution<double> noise(0.0, sigma);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < rounds; ++i)
        ratios.push_back(truth * (1.0 + noise(random))
                         * (uniform(random) < 0.03 ? 1.0 + 0.2 * uniform(random) : 1.0));
    return ratios;
}

} // namespace

class TestStatistics : public QObject
{
    Q_OBJECT
private slots:
    void medians();
    void intervalOfKnownSamples();
    void intervalIsReproducible();
    void intervalCoversTheTruth();
    void plantedSlowdownIsFound();
    void equalCopiesAreNoGain();
    void decisions_data();
    void decisions();
    void noise();
    void ratiosArePaired();
};

void TestStatistics::medians()
{
    QCOMPARE(median(std::vector<double>{}), 0.0);
    QCOMPARE(median(std::vector<double>{5}), 5.0);
    QCOMPARE(median(std::vector<double>{9, 1, 5}), 5.0);
    QCOMPARE(median(std::vector<double>{4, 1, 3, 2}), 2.5);
}

void TestStatistics::intervalOfKnownSamples()
{
    const Interval same = bootstrapMedian(std::vector<double>(50, 2.0));
    QCOMPARE(same.value, 2.0);
    QCOMPARE(same.low, 2.0);
    QCOMPARE(same.high, 2.0);
    const Interval few = bootstrapMedian(std::vector<double>{1, 5, 3});
    QCOMPARE(few.value, 3.0);
    QCOMPARE(few.low, 1.0);
    QCOMPARE(few.high, 5.0);
    QCOMPARE(bootstrapMedian(std::vector<double>{}).value, 0.0);
    // 1 … 99: the order statistics that bound the median with 95 % are about the 40th and the 60th.
    std::vector<double> ramp;
    for (int i = 1; i < 100; ++i)
        ramp.push_back(i);
    const Interval interval = bootstrapMedian(ramp, 1, 4000);
    QCOMPARE(interval.value, 50.0);
    QVERIFY2(std::abs(interval.low - 40) <= 2, qPrintable(QString::number(interval.low)));
    QVERIFY2(std::abs(interval.high - 60) <= 2, qPrintable(QString::number(interval.high)));
}

void TestStatistics::intervalIsReproducible()
{
    std::mt19937_64 random(3);
    const auto ratios = syntheticRatios(1.0, 0.01, 40, random);
    const Interval a = bootstrapMedian(ratios, 9);
    const Interval b = bootstrapMedian(ratios, 9);
    QCOMPARE(a.low, b.low);
    QCOMPARE(a.high, b.high);
    QVERIFY(a.low <= a.value && a.value <= a.high);
}

void TestStatistics::intervalCoversTheTruth()
{
    std::mt19937_64 random(11);
    int covered = 0;
    constexpr int trials = 300;
    for (int i = 0; i < trials; ++i) {
        std::normal_distribution<double> noise(1.0, 0.01);
        std::vector<double> ratios;
        for (int k = 0; k < 40; ++k)
            ratios.push_back(noise(random));
        const Interval interval = bootstrapMedian(ratios, static_cast<std::uint64_t>(i), 400);
        covered += interval.low <= 1.0 && 1.0 <= interval.high;
    }
    // 95 % nominal; the percentile bootstrap of a median of 40 is within a few points of it.
    QVERIFY2(covered >= trials * 90 / 100 && covered <= trials * 99 / 100,
             qPrintable(QString::number(covered)));
}

void TestStatistics::plantedSlowdownIsFound()
{
    std::mt19937_64 random(5);
    int found = 0;
    for (int i = 0; i < 100; ++i)
        found += decide(bootstrapMedian(syntheticRatios(0.995, 0.003, 60, random), 1, 400), 60, 0.001)
                 == Change::Loss;
    QVERIFY2(found >= 95, qPrintable(QString::number(found)));
}

void TestStatistics::equalCopiesAreNoGain()
{
    std::mt19937_64 random(6);
    int gains = 0;
    for (int i = 0; i < 100; ++i)
        gains += decide(bootstrapMedian(syntheticRatios(1.0, 0.003, 60, random), 1, 400), 60, std::nullopt)
                 == Change::Gain;
    QVERIFY2(gains <= 1, qPrintable(QString::number(gains)));
}

void TestStatistics::decisions_data()
{
    QTest::addColumn<double>("low");
    QTest::addColumn<double>("high");
    QTest::addColumn<int>("rounds");
    QTest::addColumn<double>("spread");
    QTest::addColumn<QString>("change");
    QTest::newRow("clear gain") << 1.05 << 1.06 << 30 << 0.0 << "gain";
    QTest::newRow("too small a gain") << 1.001 << 1.0029 << 30 << 0.0 << "no_gain";
    QTest::newRow("gain not ruled out") << 1.001 << 1.01 << 30 << 0.0 << "undecided";
    QTest::newRow("gain below the noise") << 1.02 << 1.03 << 30 << 0.02 << "undecided";
    QTest::newRow("gain above the noise") << 1.05 << 1.06 << 30 << 0.02 << "gain";
    QTest::newRow("slightly slower") << 0.9965 << 0.9975 << 30 << 0.0 << "no_gain";
    QTest::newRow("loss") << 0.99 << 0.995 << 30 << 0.0 << "loss";
    QTest::newRow("loss below the noise") << 0.98 << 0.99 << 30 << 0.01 << "no_gain";
    QTest::newRow("wide") << 0.9 << 1.1 << 30 << 0.0 << "undecided";
    QTest::newRow("too few rounds") << 1.5 << 1.6 << 4 << 0.0 << "undecided";
}

void TestStatistics::decisions()
{
    QFETCH(double, low);
    QFETCH(double, high);
    QFETCH(int, rounds);
    QFETCH(double, spread);
    QFETCH(QString, change);
    const Interval interval{0.5 * (low + high), low, high};
    QCOMPARE(QString(toString(decide(interval, static_cast<std::size_t>(rounds), spread))), change);
}

void TestStatistics::noise()
{
    QCOMPARE(noiseFloor({1.004, 1.003, 1.005}), 1.004 - 1.0); // bias beyond the interval
    QVERIFY(std::abs(noiseFloor({1.0, 0.99, 1.01}) - 0.01) < 1e-12);
    QCOMPARE(significantChange(std::nullopt), 0.003);
    QCOMPARE(significantChange(0.001), 0.003);
    QCOMPARE(significantChange(0.01), 0.02);
}

void TestStatistics::ratiosArePaired()
{
    const auto ratios = pairedRatios(std::vector<double>{2, 6, 8}, std::vector<double>{1, 2, 4});
    QCOMPARE(ratios, (std::vector<double>{2, 3, 2}));
}

QTEST_GUILESS_MAIN(TestStatistics)
#include "tst_statistics.moc"
