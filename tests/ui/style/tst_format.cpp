// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/uitest.h"
#include "ui/style/format.h"

#include <QTest>

#include <limits>

using namespace klineage::ui;

namespace {

/// Spaces of all widths as plain ones, to be readable here.
QString plain(QString text)
{
    return text.replace(QChar(0x202f), QLatin1Char(' '))
        .replace(QChar(0x2009), QLatin1Char('\''))
        .replace(QChar(0x2212), QLatin1Char('-'));
}

} // namespace

class FormatTest : public UiTest
{
    Q_OBJECT

private slots:
    void quantity_data();
    void quantity();
    void speedup_data();
    void speedup();
    void percent_data();
    void percent();
    void halfWidth();
    void notANumberIsADash();
    void aColumnSharesItsUnit();
};

void FormatTest::quantity_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<QString>("unit");
    QTest::addColumn<QString>("text");
    QTest::newRow("ns") << 812.0 << "ns"
                        << "812 ns";
    QTest::newRow("us") << 33900.0 << "ns"
                        << "33.9 µs";
    QTest::newRow("ms") << 1.2e6 << "ns"
                        << "1.20 ms";
    QTest::newRow("rounds up into the next unit") << 999960.0 << "ns"
                                                  << "1.00 ms";
    QTest::newRow("s") << 2e9 << "ns"
                       << "2.00 s";
    QTest::newRow("rate") << 7.4e14 << "FLOP/s"
                          << "740 TFLOP/s";
    QTest::newRow("bandwidth") << 1.31e12 << "B/s"
                               << "1.31 TB/s";
    QTest::newRow("bytes") << 8600.0 << "B"
                           << "8.40 KiB";
    QTest::newRow("few bytes") << 0.0 << "B"
                               << "0 B";
    QTest::newRow("count") << 32.0 << ""
                           << "32";
    QTest::newRow("large count") << 1048576.0 << ""
                                 << "1'048'576";
    QTest::newRow("percent") << 91.04 << "%"
                             << "91.0 %";
    QTest::newRow("energy") << 12.34 << "J"
                            << "12.3 J";
    QTest::newRow("little energy") << 0.0417 << "J"
                                   << "41.7 mJ";
    QTest::newRow("hardly any energy") << 3.21e-6 << "J"
                                       << "3.21 µJ";
    QTest::newRow("less energy") << -9.9996e-7 << "J"
                                 << "-1.00 µJ";
    QTest::newRow("no energy") << 0.0 << "J"
                               << "0 J";
    QTest::newRow("negative") << -53.0 << ""
                              << "-53";
}

void FormatTest::quantity()
{
    QFETCH(double, value);
    QFETCH(QString, unit);
    QFETCH(QString, text);
    QCOMPARE(plain(formatQuantity(value, unit)), text);
}

void FormatTest::speedup_data()
{
    QTest::addColumn<double>("value");
    QTest::addColumn<QString>("text");
    QTest::newRow("usual") << 2.834 << "2.83×";
    QTest::newRow("ten") << 10.04 << "10.0×";
    QTest::newRow("hundred") << 1408.7 << "1409×";
    QTest::newRow("slower") << 0.527 << "0.53×";
    QTest::newRow("much slower") << 0.0353 << "0.035×";
    QTest::newRow("hopeless") << 0.00071 << "0.0007×";
    QTest::newRow("no time") << 0.0 << "–";
}

void FormatTest::speedup()
{
    QFETCH(double, value);
    QFETCH(QString, text);
    QCOMPARE(formatSpeedup(value), text);
}

void FormatTest::percent_data()
{
    QTest::addColumn<double>("fraction");
    QTest::addColumn<QString>("text");
    QTest::newRow("less") << -0.646 << "-64.6 %";
    QTest::newRow("more") << 0.104 << "+10.4 %";
    QTest::newRow("much more") << 7.7 << "+770 %";
    QTest::newRow("none") << 0.0 << "0.0 %";
    QTest::newRow("no minus before zero") << -0.0001 << "0.0 %";
}

void FormatTest::percent()
{
    QFETCH(double, fraction);
    QFETCH(QString, text);
    QCOMPARE(plain(formatPercent(fraction)), text);
}

void FormatTest::halfWidth()
{
    QCOMPARE(plain(formatHalfWidth(2.0, 1.998, 2.002)), QStringLiteral("± 0.10 %"));
    QCOMPARE(plain(formatHalfWidth(2.0, 1.9992, 2.0008)), QStringLiteral("± 0.04 %"));
    QCOMPARE(plain(formatHalfWidth(2.0, 1.7, 2.3)), QStringLiteral("± 15 %"));
}

void FormatTest::notANumberIsADash()
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinite = std::numeric_limits<double>::infinity();
    for (const double value : {nan, infinite, -infinite}) {
        QCOMPARE(formatLatency(value), QStringLiteral("–"));
        QCOMPARE(formatSpeedup(value), QStringLiteral("–"));
        QCOMPARE(formatPercent(value), QStringLiteral("–"));
    }
}

void FormatTest::aColumnSharesItsUnit()
{
    const LatencyUnit unit = latencyUnitFor(195500);
    QCOMPARE(unit.symbol, QStringLiteral("µs"));
    QCOMPARE(plain(formatInUnit(195500, unit)), QStringLiteral("195.5"));
    QCOMPARE(plain(formatInUnit(275387600, unit)), QStringLiteral("275'388"));
    QCOMPARE(latencyUnitFor(1.5e6).decimals, 2);
    QCOMPARE(latencyUnitFor(12).symbol, QStringLiteral("ns"));
}

KLINEAGE_UI_TEST(FormatTest)
#include "tst_format.moc"
