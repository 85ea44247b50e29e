// SPDX-License-Identifier: GPL-3.0-or-later
// Which candidate a run picks, in a simulation with planted effects and the noise of recorded trials.
#include "core/lineage/lineage.h"
#include "core/policy/standings.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

using namespace klineage;
using namespace klineage::policy;

namespace {

const std::filesystem::path source = klineage::test::sourcePath();

/// Standard deviations of logarithms.
struct Noise {
    double reference = 0; ///< of a ratio to the reference between trials of one candidate
    double paired = 0;    ///< of a paired speedup, by its interval
};

/// From all trials of the lineages: ratios to one reference of candidates that were gated more than once, and intervals with parents.
Noise recordedNoise(const std::vector<const char *> &lineages)
{
    double squares = 0;
    double degrees = 0;
    std::vector<double> paired;
    for (const char *key : lineages) {
        const Result<lineage::Lineage> lineage = lineage::readLineage(source / "workloads" / key);
        if (!lineage)
            qFatal("%s", lineage.error().message.c_str());
        std::map<std::string, std::vector<double>> ratios;
        for (const gate::Trial &trial : lineage->trials) {
            for (const gate::Comparison &comparison : trial.verdict.comparisons) {
                const auto &speedup = comparison.speedup;
                if (comparison.against == "parent")
                    paired.push_back((std::log(speedup.high) - std::log(speedup.low)) / (2 * 1.96));
                else if (speedup.value > 0)
                    ratios[trial.candidate + comparison.against].push_back(std::log(speedup.value));
            }
        }
        for (const auto &[candidate, values] : ratios) {
            double mean = 0;
            for (const double value : values)
                mean += value / static_cast<double>(values.size());
            for (const double value : values)
                squares += (value - mean) * (value - mean);
            degrees += static_cast<double>(values.size()) - 1;
        }
    }
    std::sort(paired.begin(), paired.end());
    return {std::sqrt(squares / std::max(degrees, 1.0)), paired[paired.size() * 3 / 4]};
}

gate::Comparison compared(double factor, double sigma)
{
    gate::Comparison comparison;
    comparison.against = "parent";
    comparison.speedup = {factor, factor * std::exp(-1.96 * sigma), factor * std::exp(1.96 * sigma)};
    comparison.change = comparison.speedup.low > 1.005 ? gate::Change::Gain
                        : comparison.speedup.high < 1  ? gate::Change::Loss
                                                       : gate::Change::Undecided;
    return comparison;
}

struct Picks {
    int paired = 0; ///< runs whose pick is the true best, or within noise of it
    int reference = 0;
};

/// Runs of twelve moves from the best so far; most bring nothing or a loss, some gain a few percent.
Picks simulate(const Noise &noise, int runs)
{
    std::mt19937_64 random(20);
    std::normal_distribution<double> normal;
    const std::vector<double> effects{0.93, 0.97, 0.985, 1.0, 1.0, 1.0, 1.01, 1.02, 1.03, 1.05};
    std::uniform_int_distribution<std::size_t> effect(0, effects.size() - 1);
    const double within = 1 - 2 * noise.paired;
    Picks picks;
    for (int run = 0; run < runs; ++run) {
        for (const bool paired : {true, false}) {
            Standings standings;
            standings.addRoot("0");
            std::vector<double> truth{1};
            std::vector<double> measured{std::exp(noise.reference * normal(random))};
            std::size_t best = 0;
            for (std::size_t move = 1; move <= 12; ++move) {
                const double true_ = effects[effect(random)];
                truth.push_back(truth[best] * true_);
                measured.push_back(truth.back() * std::exp(noise.reference * normal(random)));
                const gate::Comparison comparison =
                    compared(true_ * std::exp(noise.paired * normal(random)), noise.paired);
                const bool better =
                    paired ? standings.add(std::to_string(move), std::to_string(best), &comparison)
                           : measured.back() > measured[best];
                if (better)
                    best = move;
            }
            if (paired) {
                for (const Standings::Entry &near : standings.contenders(0.02, 2)) {
                    const std::size_t at = std::stoul(near.candidate);
                    const std::string first = standings.best().candidate;
                    const double ratio = truth[at] / truth[std::stoul(first)];
                    standings.settle(near.candidate, first,
                                     compared(ratio * std::exp(noise.paired * normal(random)), noise.paired));
                }
                best = std::stoul(standings.best().candidate);
            }
            const double top = *std::max_element(truth.begin(), truth.end());
            (paired ? picks.paired : picks.reference) += truth[best] >= top * within ? 1 : 0;
        }
    }
    return picks;
}

} // namespace

class TestStandings : public QObject
{
    Q_OBJECT

private slots:
    void aBestIsACertainGain()
    {
        Standings standings;
        standings.addRoot("root");
        gate::Comparison gain = compared(1.1, 0.001);
        QVERIFY(standings.add("a", "root", &gain));
        QCOMPARE(standings.best().candidate, std::string("a"));
        gate::Comparison unsure = compared(1.02, 0.02);
        QVERIFY(!standings.add("b", "a", &unsure)); // perhaps
        QVERIFY(standings.best().score < standings.ranking()[1].score);
        QCOMPARE(standings.ranking()[0].candidate, std::string("a"));
        gate::Comparison over = compared(1.05, 0.001);
        QVERIFY(!standings.add("c", "root", &over)); // a gain, but not over the best
        QVERIFY(!standings.add("d", "nobody", &over));
        QVERIFY(!standings.add("e", "root", nullptr));
        gate::Comparison third = compared(1.09, 0.001);
        QVERIFY(!standings.add("f", "root", &third));
        const auto near = standings.contenders(0.02, 4); // b was timed beside a
        QCOMPARE(near.size(), std::size_t{1});
        QCOMPARE(near[0].candidate, std::string("f"));
        QVERIFY(standings.settle("f", "a", compared(1.03, 0.001)));
        QCOMPARE(standings.best().candidate, std::string("f"));
    }

    void theTrueBestIsPicked_data()
    {
        QTest::addColumn<bool>("gpu");
        QTest::newRow("CPU") << false;
        QTest::newRow("GPU") << true;
    }
    void theTrueBestIsPicked()
    {
        QFETCH(bool, gpu);
        const Noise noise = gpu ? recordedNoise({"gemm/lineages/sm90", "conv2d-f16/lineages/sm90"})
                                : recordedNoise({"sgemm/lineages/pocl", "sgemm/lineages/pocl-walked",
                                                 "softmax/lineages/pocl"});
        const int runs = 1000;
        const Picks picks = simulate(noise, runs);
        qInfo(
            "noise: reference %.2f %%, paired %.2f %%; the true best, or within noise of it, in %.1f of 100 runs; "
            "by ratios to the reference in %.1f",
            100 * noise.reference, 100 * noise.paired, 100.0 * picks.paired / runs,
            100.0 * picks.reference / runs);
        QVERIFY(noise.reference > 0 && noise.paired > 0);
        QVERIFY(picks.paired >= 95 * runs / 100);
        QVERIFY(picks.paired >= picks.reference);
    }
};

QTEST_GUILESS_MAIN(TestStandings)
#include "tst_standings.moc"
