// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/numbertext.h"

#include <QTest>

#include <limits>

using namespace klineage;

class TestNumberText : public QObject
{
    Q_OBJECT

private slots:
    void durations_data()
    {
        QTest::addColumn<double>("ns");
        QTest::addColumn<int>("digits");
        QTest::addColumn<QString>("text");
        QTest::newRow("ms") << 12.34e6 << 3 << "12.3 ms";
        QTest::newRow("µs") << 45.6e3 << 3 << "45.6 µs";
        QTest::newRow("s") << 2e9 << 3 << "2 s";
        QTest::newRow("ns") << 12.0 << 3 << "12 ns";
        QTest::newRow("four digits") << 209'420.0 << 4 << "209.4 µs";
        QTest::newRow("below a nanosecond") << 0.25 << 3 << "0.25 ns";
        QTest::newRow("none") << 0.0 << 3 << "0 ns";
        QTest::newRow("just below") << 999.4 << 3 << "999 ns";
        QTest::newRow("rounds to the next unit") << 999.6 << 3 << "1 µs";
        QTest::newRow("rounds to more digits") << 9.996e3 << 3 << "10 µs";
        QTest::newRow("an hour") << 3.6e12 << 3 << "3600 s";
        QTest::newRow("infinite") << std::numeric_limits<double>::infinity() << 3 << "inf ns";
    }

    void durations()
    {
        QFETCH(double, ns);
        QFETCH(int, digits);
        QTEST(QString::fromStdString(durationText(ns, digits)), "text");
        QCOMPARE(durationText(2e9, 3, Zeros::Kept), std::string("2.00 s"));
        QCOMPARE(durationText(1600, 4, Zeros::Kept), std::string("1.600 µs"));
    }

    void digits_data()
    {
        QTest::addColumn<double>("value");
        QTest::addColumn<QString>("text");
        QTest::newRow("one") << 1.0 << "1.000";
        QTest::newRow("below") << 0.012345 << "0.01235";
        QTest::newRow("hundreds") << 209.44 << "209.4";
        QTest::newRow("rounds up") << 9.99996 << "10.00";
        QTest::newRow("larger than its digits") << 123456.0 << "123456";
        QTest::newRow("negative") << -2.5 << "-2.500";
        QTest::newRow("zero") << 0.0 << "0.000";
    }

    void digits()
    {
        QFETCH(double, value);
        QTEST(QString::fromStdString(digitsText(value, 4)), "text");
    }

    void others()
    {
        QCOMPARE(significantText(366.0, 6), std::string("366"));
        QCOMPARE(significantText(1.0 / 3, 3), std::string("0.333"));
        QCOMPARE(significantText(1.5e9, 3), std::string("1.5e+09"));
        QCOMPARE(significantText(-std::numeric_limits<double>::infinity(), 6), std::string("-inf"));
        QCOMPARE(fixedText(0.0125, 2), std::string("0.01"));
        QCOMPARE(fixedText(2, 3), std::string("2.000"));
        QCOMPARE(fixedText(std::numeric_limits<double>::max(), 6).size(), std::size_t{316});
        QCOMPARE(shortestText(0.1), std::string("0.1"));
        QCOMPARE(shortestText(1e21), std::string("1e+21"));
        QCOMPARE(numberIn("4095881394324"), 4095881394324.0);
        QCOMPARE(numberIn("1.25e9 B/s"), 1.25e9);
        QCOMPARE(numberIn("none"), 0.0);
    }
};

QTEST_GUILESS_MAIN(TestNumberText)
#include "tst_numbertext.moc"
