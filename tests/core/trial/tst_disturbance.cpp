// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/disturbance.h"

#include <QTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

Trial timed(kernel::Surface surface, const std::map<std::string, std::string> &facts,
            const std::vector<Evidence> &evidence = {})
{
    Trial trial;
    trial.surface = surface;
    trial.latencyNs = {100, 99, 101};
    trial.environment.facts = facts;
    trial.verdict.evidence = evidence;
    return trial;
}

} // namespace

class TestDisturbance : public QObject
{
    Q_OBJECT

private slots:
    void aBusyMachine()
    {
        const auto of = [](const char *load, const char *threads) {
            return disturbancesOf(
                timed(kernel::Surface::OpenCl, {{"load_1min", load}, {"cpu_threads", threads}}));
        };
        QCOMPARE(of("2.46", "2").size(), std::size_t{0}); // the trial's own threads, and little more
        QCOMPARE(of("2.99", "2").size(), std::size_t{0});
        const std::vector<Disturbance> busy = of("5.19", "2");
        QCOMPARE(busy.size(), std::size_t{1});
        QVERIFY((busy.front() == Disturbance{Disturbance::Kind::Load, 5.19, 2}));
        QCOMPARE(of("5.19", "8").size(), std::size_t{0});
        QCOMPARE(of("5.19", "0").size(), std::size_t{0});
        QCOMPARE(of("", "2").size(), std::size_t{0});
        // Of a GPU's times the load of its host is no part.
        QVERIFY(
            disturbancesOf(timed(kernel::Surface::Cuda, {{"load_1min", "9"}, {"cpu_threads", "2"}})).empty());
        // What was not timed has no times that could be disturbed.
        Trial wrong = timed(kernel::Surface::OpenCl, {{"load_1min", "9"}, {"cpu_threads", "2"}});
        wrong.latencyNs = {};
        QVERIFY(disturbancesOf(wrong).empty());
        QVERIFY(disturbancesOf(timed(kernel::Surface::OpenCl, {})).empty());
    }

    void aClockThatWasHeldBack_data()
    {
        QTest::addColumn<QString>("reasons");
        QTest::addColumn<bool>("held");
        QTest::newRow("nothing") << "0x0" << false;
        QTest::newRow("idle") << "0x1" << false;
        QTest::newRow("power limit") << "0x4" << false;
        QTest::newRow("hardware") << "0x8" << true;
        QTest::newRow("heat") << "0x24" << true;
        QTest::newRow("heat, hardware") << "0x40" << true;
        QTest::newRow("power brake") << "0x80" << true;
        QTest::newRow("no number") << "unknown" << false;
    }

    void aClockThatWasHeldBack()
    {
        QFETCH(QString, reasons);
        QFETCH(bool, held);
        const auto found =
            disturbancesOf(timed(kernel::Surface::Cuda, {{"throttle_reasons", reasons.toStdString()}}));
        QCOMPARE(found.size(), std::size_t{held ? 1U : 0U});
        if (held)
            QVERIFY(found.front().kind == Disturbance::Kind::Held);
    }

    void aClockThatMoved()
    {
        const auto of = [](const char *discarded, const char *kept) {
            return disturbancesOf(
                timed(kernel::Surface::Cuda, {}, {{"rounds", kept}, {"discarded_rounds", discarded}}));
        };
        QVERIFY(of("20", "30").empty());
        const auto moved = of("200", "96");
        QCOMPARE(moved.size(), std::size_t{1});
        QVERIFY((moved.front() == Disturbance{Disturbance::Kind::Unsteady, 200, 96}));
        QVERIFY(disturbancesOf(timed(kernel::Surface::Cuda, {}, {{"rounds", "30"}})).empty());
    }
};

QTEST_GUILESS_MAIN(TestDisturbance)
#include "tst_disturbance.moc"
