// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/statistics.h"

#include "core/trial/shareof.h"

#include <QtTest>

#include <algorithm>
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
    void fewBlocksAreWider();
    void timesAndRatiosAreNeverNegative();
    void widthFollowsStudent_data();
    void widthFollowsStudent();
    void shiftedBlocksAreSeen();
    void blocksCoverTheTruth();
    void plantedSlowdownIsFound();
    void equalCopiesAreNoGain();
    void decisions_data();
    void decisions();
    void rareSamplesCountOnAverage();
    void looksShareOneLevel();
    void aLookWidensByStudent();
    void looksAreFewerLater();
    void whatIsNeitherIsOpen_data();
    void whatIsNeitherIsOpen();
    void lookingOftenDoesNotMakeChanges();
    void clearChangesAreSettledSoon_data();
    void clearChangesAreSettledSoon();
    void noise();
    void ratiosArePaired();
    void sharesHaveExactIntervals_data();
    void sharesHaveExactIntervals();
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

void TestStatistics::fewBlocksAreWider()
{
    QCOMPARE(blockedMedian(std::vector<double>{}, std::vector<std::size_t>{}).value, 0.0);
    std::mt19937_64 random(21);
    const auto ratios = syntheticRatios(1.0, 0.003, 60, random);
    const auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
    const Interval one = blockedMedian(ratios, std::vector<std::size_t>{60});
    QCOMPARE(one.value, median(ratios));
    QCOMPARE(one.low, *lowest); // nothing is known of other blocks
    QCOMPARE(one.high, *highest);
    double before = halfWidth(one);
    for (const std::size_t blocks : {2u, 5u, 12u}) {
        std::vector<std::size_t> ends;
        for (std::size_t i = 1; i <= blocks; ++i)
            ends.push_back(i * 60 / blocks);
        const Interval interval = blockedMedian(ratios, ends, 1, 2000);
        QVERIFY(interval.low <= interval.value && interval.value <= interval.high);
        QVERIFY2(halfWidth(interval) < before, qPrintable(QString::number(blocks)));
        before = halfWidth(interval);
    }
    const Interval again = blockedMedian(ratios, std::vector<std::size_t>{30, 60}, 5);
    QCOMPARE(again.low, blockedMedian(ratios, std::vector<std::size_t>{30, 60}, 5).low);
}

void TestStatistics::timesAndRatiosAreNeverNegative()
{
    // Two blocks on a busy machine: Student's t would reach far below zero, which no ratio of times is.
    const std::vector<double> ratios{0.2, 0.3, 0.2, 3.0, 4.0, 3.5};
    const Interval interval = blockedMedian(ratios, std::vector<std::size_t>{3, 6});
    QCOMPARE(interval.low, 0.0);
    QVERIFY(interval.high > 4.0);
    std::vector<double> negative(ratios);
    for (double &value : negative)
        value -= 2;
    QVERIFY(blockedMedian(negative, std::vector<std::size_t>{3, 6}).low < 0);
}

void TestStatistics::widthFollowsStudent_data()
{
    QTest::addColumn<int>("blocks");
    QTest::addColumn<double>("t"); // 97.5 % point, blocks − 1 degrees of freedom, from a table
    QTest::newRow("2") << 2 << 12.706;
    QTest::newRow("3") << 3 << 4.303;
    QTest::newRow("6") << 6 << 2.571;
    QTest::newRow("11") << 11 << 2.228;
    QTest::newRow("12") << 12 << 2.201;
    QTest::newRow("31") << 31 << 2.042;
    QTest::newRow("121") << 121 << 1.980;
}

/// Every block holds one value many times over, so that a resample's median is that of the blocks drawn. About the median the interval
/// reaches widening × as far as the plain percentiles, which are had by resampling the blocks' values themselves.
void TestStatistics::widthFollowsStudent()
{
    QFETCH(int, blocks);
    QFETCH(double, t);
    constexpr int resamples = 4000;
    std::mt19937_64 random(31);
    std::normal_distribution<double> normal(1.0, 0.01);
    std::vector<double> values;
    std::vector<double> rounds;
    std::vector<std::size_t> ends;
    for (int block = 0; block < blocks; ++block) {
        values.push_back(normal(random));
        rounds.insert(rounds.end(), 9, values.back());
        ends.push_back(rounds.size());
    }
    std::vector<double> medians;
    std::vector<double> sample(values.size());
    for (int i = 0; i < resamples; ++i) {
        for (double &value : sample)
            value = values[random() % values.size()];
        medians.push_back(median(sample));
    }
    std::sort(medians.begin(), medians.end());
    const double center = median(values);
    const double count = blocks;
    const double widening = t / 1.959964 * std::sqrt(count / (count - 1));
    const double low = center - widening * (center - medians[resamples / 40]);
    const double high = center + widening * (medians[resamples - resamples / 40] - center);
    const Interval interval = blockedMedian(rounds, ends, 1, resamples);
    QCOMPARE(interval.value, center);
    const double tolerance = 0.12 * (high - low); // two resamplings of a coarse distribution
    QVERIFY2(
        std::abs(interval.low - low) <= tolerance && std::abs(interval.high - high) <= tolerance,
        qPrintable(
            QString("%1 … %2, expected %3 … %4").arg(interval.low).arg(interval.high).arg(low).arg(high)));
}

void TestStatistics::shiftedBlocksAreSeen()
{
    // Placement shifts half of the blocks by one percent: the rounds alone look as if they knew the median to a tenth of that.
    std::mt19937_64 random(8);
    std::vector<double> ratios;
    std::vector<std::size_t> ends;
    for (int block = 0; block < 6; ++block) {
        const auto rounds = syntheticRatios(block % 2 == 0 ? 0.995 : 1.005, 0.0005, 20, random);
        ratios.insert(ratios.end(), rounds.begin(), rounds.end());
        ends.push_back(ratios.size());
    }
    const Interval interval = blockedMedian(ratios, ends, 1, 1000);
    QVERIFY(interval.low < 0.996 && interval.high > 1.004);
    QCOMPARE(decide(interval, ratios.size(), 0.001), Change::Undecided);
}

void TestStatistics::blocksCoverTheTruth()
{
    std::mt19937_64 random(12);
    int covered = 0;
    constexpr int trials = 200;
    for (int i = 0; i < trials; ++i) {
        std::normal_distribution<double> placement(1.0, 0.005);
        std::vector<double> ratios;
        std::vector<std::size_t> ends;
        for (int block = 0; block < 6; ++block) {
            const auto rounds = syntheticRatios(placement(random), 0.002, 6, random);
            ratios.insert(ratios.end(), rounds.begin(), rounds.end());
            ends.push_back(ratios.size());
        }
        const Interval interval = blockedMedian(ratios, ends, static_cast<std::uint64_t>(i), 300);
        covered += interval.low <= 1.0 && 1.0 <= interval.high;
    }
    QVERIFY2(covered >= trials * 93 / 100, qPrintable(QString::number(covered)));
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

/// Quicker by a third in nine of ten samples, and twenty times as long in the tenth.
void TestStatistics::rareSamplesCountOnAverage()
{
    const std::vector<double> other(40, 1.34);
    std::vector<double> candidate(40, 1.0);
    QVERIFY(!losesOnAverage(other, candidate, FarSamples{1.5, 1.7}));
    for (std::size_t i = 0; i < candidate.size(); i += 10)
        candidate[i] = 20;
    QVERIFY(losesOnAverage(other, candidate, FarSamples{1.5, 1.7}));
    QVERIFY(!losesOnAverage(other, candidate, FarSamples{1.5, 3})); // four where others wander too
    std::vector<double> disturbed = other;
    for (std::size_t i = 5; i < disturbed.size(); i += 10)
        disturbed[i] = 20; // both are
    QVERIFY(!losesOnAverage(disturbed, candidate, FarSamples{1.5, 1.7}));
    candidate.assign(40, 1.0);
    candidate[7] = 1.6; // beyond, and the mean is still less
    QVERIFY(!losesOnAverage(other, candidate, FarSamples{1.5, 1.7}));
    QVERIFY(!losesOnAverage({}, candidate, FarSamples{1.5, 1.7}));
    // Quicker by a twentieth most of the time, and slower by a third now and then, as a device's own do not.
    for (std::size_t i = 0; i < candidate.size(); ++i)
        candidate[i] = 0.95 * other[i] * (i % 3 == 0 ? 1.4 : 1);
    QVERIFY(!losesOnAverage(other, candidate, farOnHost));
    QVERIFY(losesOnAverage(other, candidate, farOnDevice));
    // At a stretch, and by chance less often than a third of the time: the mean is less, but nothing is certain of it.
    candidate.assign(40, 0.95 * 1.34);
    std::fill_n(candidate.begin() + 8, 4, 1.34 * 1.33);
    QVERIFY(losesOnAverage(other, candidate, farOnDevice));
    candidate.assign(40, 0.5 * 1.34); // of which it is
    std::fill_n(candidate.begin() + 8, 4, 1.34);
    QVERIFY(!losesOnAverage(other, candidate, farOnDevice));
}

void TestStatistics::looksShareOneLevel()
{
    double sum = 0;
    for (std::size_t look = 1; look < 3000; ++look)
        sum += lookLevel(look);
    QVERIFY2(sum > 0.0499 && sum < 0.05, qPrintable(QString::number(sum)));
}

void TestStatistics::aLookWidensByStudent()
{
    const Interval widened =
        widenedTo({1.0, 0.9, 1.2}, 5, 0.01); // tables: t(0.995, 4) = 4.6041, t(0.975, 4) = 2.7764
    QVERIFY(std::abs(widened.low - (1 - 0.1 * 4.6041 / 2.7764)) < 1e-5);
    QVERIFY(std::abs(widened.high - (1 + 0.2 * 4.6041 / 2.7764)) < 1e-5);
    QCOMPARE(widenedTo({1.0, 0.9, 1.2}, 1, 0.01).low, 0.9);
}

void TestStatistics::looksAreFewerLater()
{
    std::vector<std::size_t> after;
    for (std::size_t blocks = 0; blocks <= 60; ++blocks) {
        if (const auto look = lookAfter(blocks, 5)) {
            after.push_back(blocks);
            QCOMPARE(*look, after.size());
        }
    }
    QCOMPARE(after, (std::vector<std::size_t>{5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60}));
}

void TestStatistics::whatIsNeitherIsOpen_data()
{
    QTest::addColumn<double>("low");
    QTest::addColumn<double>("high");
    QTest::addColumn<double>("spread");
    QTest::addColumn<bool>("open");
    QTest::newRow("gain") << 1.01 << 1.02 << 0.0 << false;
    QTest::newRow("loss") << 0.99 << 0.996 << 0.0 << false;
    QTest::newRow("a tie") << 0.9975 << 1.0025 << 0.0 << false;
    QTest::newRow("a loss is not ruled out") << 0.9925 << 0.9975 << 0.0 << true;
    QTest::newRow("a gain is not ruled out") << 1.0 << 1.004 << 0.0 << true;
    QTest::newRow("a loss below a noise that may yet shrink") << 0.993 << 0.999 << 0.004 << true;
    QTest::newRow("a tie in noise") << 0.998 << 1.002 << 0.01 << false;
}

void TestStatistics::whatIsNeitherIsOpen()
{
    QFETCH(double, low);
    QFETCH(double, high);
    QFETCH(double, spread);
    QFETCH(bool, open);
    QCOMPARE(isOpen({0.5 * (low + high), low, high}, spread), open);
}

namespace {

/// Looks from the fifth block on, as the profiler does; what was settled, and after how many blocks.
std::pair<Change, std::size_t> settledAfter(double truth, double placementSigma, double noise,
                                            std::size_t mostBlocks, std::mt19937_64 &random)
{
    std::normal_distribution<double> placement(truth, truth * placementSigma);
    std::vector<double> ratios;
    std::vector<std::size_t> ends;
    for (std::size_t block = 1; block <= mostBlocks; ++block) {
        const auto rounds = syntheticRatios(placement(random), noise, 5, random);
        ratios.insert(ratios.end(), rounds.begin(), rounds.end());
        ends.push_back(ratios.size());
        const auto look = lookAfter(block, 5);
        if (!look)
            continue;
        const Interval interval = blockedMedian(ratios, ends, block, 200);
        if (settled(interval, block, *look, std::nullopt))
            return {decide(interval, ratios.size(), std::nullopt), block};
    }
    return {Change::Undecided, mostBlocks};
}

} // namespace

void TestStatistics::lookingOftenDoesNotMakeChanges()
{
    std::mt19937_64 random(21);
    int changes = 0;
    constexpr int trials = 60;
    for (int i = 0; i < trials; ++i) {
        const auto [change, blocks] = settledAfter(1.0, 0.004, 0.004, 16, random);
        changes += change == Change::Gain || change == Change::Loss;
    }
    QVERIFY2(changes <= trials * 5 / 100, qPrintable(QString::number(changes)));
}

void TestStatistics::clearChangesAreSettledSoon_data()
{
    QTest::addColumn<double>("truth");
    QTest::addColumn<double>("noise");
    QTest::addColumn<int>("most");
    QTest::newRow("a twentieth faster") << 1.05 << 0.004 << 12;
    QTest::newRow("a twentieth slower") << 0.95 << 0.004 << 12;
    QTest::newRow("twice as fast, noisy") << 2.0 << 0.01 << 20;
    QTest::newRow("ninety times as fast") << 90.0 << 0.02 << 20;
}

void TestStatistics::clearChangesAreSettledSoon()
{
    QFETCH(double, truth);
    QFETCH(double, noise);
    QFETCH(int, most);
    std::mt19937_64 random(22);
    for (int i = 0; i < 6; ++i) {
        const auto [change, blocks] = settledAfter(truth, noise, noise, 60, random);
        QCOMPARE(QString(toString(change)), truth > 1 ? QStringLiteral("gain") : QStringLiteral("loss"));
        QVERIFY2(blocks <= static_cast<std::size_t>(most), qPrintable(QString::number(blocks)));
    }
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

/// Tables of Clopper and Pearson's interval.
void TestStatistics::sharesHaveExactIntervals_data()
{
    QTest::addColumn<int>("count");
    QTest::addColumn<int>("trials");
    QTest::addColumn<double>("low");
    QTest::addColumn<double>("high");
    QTest::newRow("none of ten") << 0 << 10 << 0.0 << 0.30850;
    QTest::newRow("one of ten") << 1 << 10 << 0.00253 << 0.44502;
    QTest::newRow("half of ten") << 5 << 10 << 0.18709 << 0.81291;
    QTest::newRow("all of ten") << 10 << 10 << 0.69150 << 1.0;
    QTest::newRow("none of 10,000") << 0 << 10'000 << 0.0 << 0.00037;
}

void TestStatistics::sharesHaveExactIntervals()
{
    QFETCH(int, count);
    QFETCH(int, trials);
    QFETCH(double, low);
    QFETCH(double, high);
    const Interval share = shareOf(count, trials);
    QCOMPARE(share.value, static_cast<double>(count) / trials);
    QVERIFY2(std::abs(share.low - low) < 1e-5 && std::abs(share.high - high) < 1e-5,
             qPrintable(QStringLiteral("%1 … %2").arg(share.low).arg(share.high)));
}

QTEST_GUILESS_MAIN(TestStatistics)
#include "tst_statistics.moc"
