// SPDX-License-Identifier: GPL-3.0-or-later
//
// How often the rule that stops and decides a comparison errs, on noise that was recorded in the library's trials on a GPU. A hundred trials
// here; KLINEAGE_RESAMPLED_TRIALS=10000, or `klineage-gate resample workloads`, draws as many as the bar of one false in a hundred was set for.
#include "core/gate/selftest/resampling.h"
#include "tests/paths.h"

#include <QTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::gate;

namespace {

/// Trials for the time that a test may take; KLINEAGE_RESAMPLED_TRIALS says how many instead.
int trialCount()
{
    const int usual = klineage::test::isSanitized() ? 25 : 100;
    return qEnvironmentVariableIntValue("KLINEAGE_RESAMPLED_TRIALS") > 0
               ? qEnvironmentVariableIntValue("KLINEAGE_RESAMPLED_TRIALS")
               : usual;
}

ResampleCounts drawn(const std::vector<Noise> &noises, const ResampleOptions &options)
{
    const ResampleCounts counts = resample(noises, options);
    qInfo("%d trials from %zu recorded ones: %d gains, %d losses, %d undecided, %zu blocks (95 %%: %zu)",
          options.trials, noises.size(), counts.gains, counts.losses, counts.undecided, counts.blocksP50,
          counts.blocksP95);
    return counts;
}

} // namespace

class TestResampling : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        const auto noises = recordedNoise(klineage::test::sourcePath("/workloads"), "sm90");
        QVERIFY2(noises, noises ? "" : noises.error().message.c_str());
        m_noises = *noises;
        QVERIFY2(m_noises.size() >= 40, qPrintable(QString::number(m_noises.size())));
        m_quiet = m_noises;
        std::erase_if(m_quiet, [](const Noise &noise) { return floorOf(noise) >= 0.0012; });
        QVERIFY2(m_quiet.size() >= 10, qPrintable(QString::number(m_quiet.size())));
    }

    /// At most one in a hundred comparisons of a kernel with itself says gain or loss, whether it stops when certain or at a width.
    void sameIsSame_data()
    {
        QTest::addColumn<bool>("quick");
        QTest::newRow("quick") << true;
        QTest::newRow("to a half-width") << false;
    }
    void sameIsSame()
    {
        QFETCH(bool, quick);
        ResampleOptions options;
        options.quick = quick;
        options.trials = quick ? trialCount() : std::max(1, trialCount() / 4);
        options.seed = quick ? 1 : 1'000'000;
        const ResampleCounts counts = drawn(m_noises, options);
        QVERIFY(counts.gains + counts.losses <= std::max(1, options.trials / 100));
    }

    /// Half a percent is found in 57 of 60, where noise is such that it can be: on recorded trials whose copies were within 0.12 %.
    void halfAPercentIsFound_data()
    {
        QTest::addColumn<bool>("quick");
        QTest::addColumn<double>("halfWidth");
        QTest::newRow("quick") << true << 0.002;
        QTest::newRow("to a half-width") << false << 0.002;
        QTest::newRow("to a finer one") << false << 0.001;
    }
    void halfAPercentIsFound()
    {
        QFETCH(bool, quick);
        QFETCH(double, halfWidth);
        ResampleOptions options;
        options.quick = quick;
        options.targetHalfWidth = halfWidth;
        options.slower = 0.005;
        // So many that chance decides it in one of two hundred times, when 97.5 % are found, as of all that is recorded.
        options.trials = klineage::test::isSanitized() ? 20 : halfWidth < 0.002 ? 60 : 300;
        options.seed = 2'000'000;
        const ResampleCounts counts = drawn(m_quiet, options);
        QCOMPARE(counts.gains, 0);
        QVERIFY(counts.losses >= options.trials * 57 / 60);
    }

    /// What is clear is known as soon as before: after the fewest blocks.
    void clearChangesTakeNoLonger()
    {
        ResampleOptions options;
        options.slower = 0.1;
        options.trials = klineage::test::isSanitized() ? 20 : 60;
        const ResampleCounts counts = drawn(m_quiet, options);
        QCOMPARE(counts.losses, options.trials);
        QVERIFY2(counts.blocksP95 <= 6, qPrintable(QString::number(counts.blocksP95)));
    }

private:
    std::vector<Noise> m_noises;
    std::vector<Noise> m_quiet;
};

QTEST_GUILESS_MAIN(TestResampling)
#include "tst_resampling.moc"
