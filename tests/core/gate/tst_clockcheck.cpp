// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/clockcheck.h"

#include <QTest>

using namespace klineage;
using namespace klineage::gate;

class TestClockCheck : public QObject
{
    Q_OBJECT

private slots:
    void readings_data()
    {
        QTest::addColumn<double>("claimedMs");
        QTest::addColumn<double>("elapsedMs");
        QTest::addColumn<double>("ranMs");
        QTest::addColumn<double>("waitedMs");
        QTest::addColumn<bool>("agree");
        QTest::newRow("quiet and right") << 100.0 << 103.0 << 100.0 << 0.0 << true;
        QTest::newRow("quiet, ten per cent slow") << 100.0 << 112.0 << 112.0 << 0.0 << false;
        QTest::newRow("quiet, half") << 100.0 << 200.0 << 200.0 << 0.0 << false;
        QTest::newRow("busy and right") << 100.0 << 200.0 << 100.0 << 95.0 << true;
        QTest::newRow("very busy and right") << 100.0 << 900.0 << 100.0 << 795.0 << true;
        QTest::newRow("busy, a fifth") << 100.0 << 900.0 << 500.0 << 390.0 << false;
        QTest::newRow("waits itself, and hides a third behind it")
            << 100.0 << 800.0 << 300.0 << 500.0 << false;
    }

    void readings()
    {
        QFETCH(double, claimedMs);
        QFETCH(double, elapsedMs);
        QFETCH(double, ranMs);
        QFETCH(double, waitedMs);
        ClockReadings readings;
        readings.claimed = claimedMs * 1e6;
        readings.elapsed = elapsedMs * 1e6;
        readings.samples = 2;
        readings.spent.ranNs = ranMs * 1e6;
        readings.spent.waitedNs = waitedMs * 1e6;
        QTEST(clocksAgree(readings), "agree");
    }
};

QTEST_GUILESS_MAIN(TestClockCheck)
#include "tst_clockcheck.moc"
