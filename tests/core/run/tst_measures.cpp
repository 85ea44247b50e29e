// SPDX-License-Identifier: GPL-3.0-or-later
// The measures of papers, by hand-made outcomes and by an experiment that was recorded.
#include "core/run/experiment/measures.h"
#include "tests/paths.h"

#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::run;

namespace {

bool isNear(double a, double b)
{
    return std::fabs(a - b) < 1e-12;
}

} // namespace

class TestMeasures : public QObject
{
    Q_OBJECT

private slots:
    void nothingIsZero()
    {
        const std::vector<Instance> none;
        QCOMPARE(shareCorrect(none), 0.0);
        QCOMPARE(fastShare(none, 1), 0.0);
        QCOMPARE(meanSpeedupRatio(none), 0.0);
        QCOMPARE(geometricMeanSpeedup(none), 0.0);
    }

    void whatFailedCountsInTheWhole()
    {
        // 4× and wrong counts for nothing; exactly 1× is not faster; 0.5× is correct, and slower.
        const std::vector<Instance> all{{true, 4}, {true, 1}, {true, 0.5}, {false, 4}};
        QVERIFY(isNear(shareCorrect(all), 0.75));
        QVERIFY(isNear(fastShare(all, 0), 0.75));
        QVERIFY(isNear(fastShare(all, 1), 0.25));
        QVERIFY(isNear(fastShare(all, 0.5), 0.5));
        QVERIFY(isNear(fastShare(all, 4), 0));
        QVERIFY(isNear(meanSpeedupRatio(all), (4.0 + 1.0) / 4));
        QVERIFY(isNear(geometricMeanSpeedup(all), std::cbrt(2.0)));
    }

    void allFailed()
    {
        const std::vector<Instance> all{{false, 2}, {false, 0}};
        QCOMPARE(shareCorrect(all), 0.0);
        QCOMPARE(meanSpeedupRatio(all), 0.0);
        QCOMPARE(geometricMeanSpeedup(all), 0.0);
    }

    void theRootIsNobodysResult()
    {
        CellResult cell;
        cell.state = "finished";
        cell.summary.finalSpeedup = 3;
        QVERIFY(!instanceOf(cell).correct); // not improved: it is the root's
        cell.summary.improved = true;
        QVERIFY(instanceOf(cell).correct);
        QCOMPARE(instanceOf(cell).speedup, 3.0);
        cell.state = "stopped";
        QVERIFY(!instanceOf(cell).correct);
    }

    /// Of a recorded experiment the measures are those of its runs, one by one.
    void aRecordedExperiment()
    {
        const auto experiment = readExperiment(std::filesystem::path(klineage::test::sourcePath())
                                               / "tests/data/experiments/cards-against-none");
        QVERIFY2(experiment, experiment ? "" : experiment.error().message.c_str());
        const ExperimentResults results = readResults(*experiment);
        const std::vector<Measures> measures = measuresOf(*experiment, results);
        QCOMPARE(measures.size(), results.policies.size());
        int measured = 0;
        for (std::size_t i = 0; i < measures.size(); ++i) {
            const Measures &of = measures[i];
            const PolicyResult &policy = results.policies[i];
            QCOMPARE(of.policy, policy.policy);
            QCOMPARE(of.root, policy.root);
            QCOMPARE(of.instances, policy.successes + policy.failures);
            int correct = 0;
            int fast = 0;
            double ratios = 0;
            for (const CellResult &cell : results.cells) {
                if (!cell.isOver() || cell.cell.policy != of.policy
                    || (!of.root.empty() && cell.cell.root != of.root) || !cell.summary.improved)
                    continue;
                ++correct;
                fast += cell.summary.finalSpeedup > 1 ? 1 : 0;
                ratios += cell.summary.finalSpeedup >= 1 ? cell.summary.finalSpeedup : 0;
            }
            measured += of.instances;
            QVERIFY(of.instances > 0);
            QVERIFY(isNear(of.correct, static_cast<double>(correct) / of.instances));
            QVERIFY(isNear(of.fast1, static_cast<double>(fast) / of.instances));
            QVERIFY(isNear(of.amsr, ratios / of.instances));
            QVERIFY(of.fast2 <= of.fast1 && of.fast1 <= of.correct);
        }
        QCOMPARE(measured, 24); // twelve runs, by root and over all
    }
};

QTEST_GUILESS_MAIN(TestMeasures)
#include "tst_measures.moc"
