// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/uitest.h"
#include "ui/plots/roofline/labelplaces.h"
#include "ui/plots/roofline/rooflineplot.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QSignalSpy>
#include <QTest>

#include <random>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;

namespace {

/// Eleven states of which the last five lie close together, as in gemm/sm90.
RooflineView crowded()
{
    RooflineView view;
    view.path.device = "NVIDIA H200";
    view.path.bytes = gate::RooflineBytes::Counted;
    view.path.ceilings = {{"copy", 4e12, true, "measured on 2026-11-21 over 314.6 MB"},
                          {"bf16", 9.4e14, false, "measured on 2026-11-21"},
                          {"fp32", 6.5e13, false, "measured on 2026-11-21"}};
    const double rates[] = {5e11, 7e12, 2.7e13, 3.2e13, 3.5e13, 3.5e14, 4.3e14, 6.2e14, 7e14, 7.6e14, 8e14};
    for (int i = 0; i < 11; ++i)
        view.path.points.push_back({QStringLiteral("K%1").arg(i, 2, 10, QLatin1Char('0')).toStdString(),
                                    130.0 + 58 * i, rates[i], 1.4e11 / rates[i] * 1e9});
    view.length = 9;
    view.selected = QStringLiteral("K08");
    return view;
}

} // namespace

class TestRooflinePlot : public UiTest
{
    Q_OBJECT

private slots:
    /// Property: no name covers another, a point, or what is taken, and all lie in the room.
    void namesNeverOverlap()
    {
        std::mt19937 random(11);
        std::uniform_real_distribution<double> x(0, 400);
        std::uniform_real_distribution<double> y(0, 180);
        const QRectF room(0, 0, 400, 180);
        const std::vector<QRectF> taken = {{0, 0, 200, 16}};
        int placed = 0;
        for (int run = 0; run < 200; ++run) {
            std::vector<PlacedName> names;
            for (int i = 0; i < 12; ++i)
                names.push_back({{x(random), y(random)}, {26, 13}});
            const auto places = placeNames(names, room, taken);
            QCOMPARE(places.size(), names.size());
            for (std::size_t i = 0; i < places.size(); ++i) {
                if (!places[i])
                    continue;
                ++placed;
                QVERIFY(room.contains(*places[i]));
                QVERIFY(!places[i]->intersects(taken[0]));
                for (std::size_t k = 0; k < places.size(); ++k) {
                    QVERIFY(!places[i]->contains(names[k].point));
                    QVERIFY(k == i || !places[k] || !places[k]->intersects(*places[i]));
                }
            }
        }
        QVERIFY2(placed > 200 * 11, qPrintable(QString::number(placed))); // nearly all have a place
    }

    void aPointOutsideHasNoName()
    {
        const auto places = placeNames({{{500, 50}, {26, 13}}, {{50, 50}, {26, 13}}}, {0, 0, 400, 180});
        QVERIFY(!places[0]);
        QVERIFY(places[1]);
    }

    /// All states are named on the smallest dock too, apart from each other; the selected one is ringed and its place told.
    void allStatesAreNamed_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<bool>("dark");
        QTest::newRow("dock") << QSize(420, 220) << false;
        QTest::newRow("large") << QSize(960, 480) << true;
    }

    void allStatesAreNamed()
    {
        QFETCH(QSize, size);
        QFETCH(bool, dark);
        Theme::apply(*qApp, dark ? ThemeChoice::Dark : ThemeChoice::Light);
        RooflinePlot roofline;
        roofline.setView(crowded());
        roofline.resize(size);
        roofline.show();
        QVERIFY(QTest::qWaitForWindowExposed(&roofline));
        roofline.plot()->replot(QCustomPlot::rpImmediateRefresh);
        const auto &places = roofline.namePlaces();
        QCOMPARE(places.size(), std::size_t(11));
        for (std::size_t i = 0; i < places.size(); ++i) {
            QVERIFY2(places[i], qPrintable(QString::number(i)));
            for (std::size_t k = 0; k < i; ++k)
                QVERIFY(!places[k]->intersects(*places[i]));
        }
        QVERIFY2(roofline.caption().startsWith(QLatin1String("K08: 700")), qPrintable(roofline.caption()));
        QVERIFY(roofline.caption().contains(QLatin1String("of the bf16 roof")));
        Theme::apply(*qApp, ThemeChoice::Light);
    }

    void hoverAndClickNameAPoint()
    {
        RooflinePlot roofline;
        roofline.setView(crowded());
        roofline.resize(600, 300);
        roofline.show();
        QVERIFY(QTest::qWaitForWindowExposed(&roofline));
        roofline.plot()->replot(QCustomPlot::rpImmediateRefresh);
        const QPoint first(static_cast<int>(roofline.plot()->xAxis->coordToPixel(130)),
                           static_cast<int>(roofline.plot()->yAxis->coordToPixel(5e11)));
        QCOMPARE(roofline.pointAt(first), QStringLiteral("K00"));
        QCOMPARE(roofline.pointAt(QPoint(1, 1)), QString());
        QSignalSpy hovered(&roofline, &RooflinePlot::hovered);
        QSignalSpy chosen(&roofline, &RooflinePlot::chosen);
        QTest::mouseMove(roofline.plot(), first);
        QTRY_VERIFY(!hovered.isEmpty());
        QTest::mouseClick(roofline.plot(), Qt::LeftButton, {}, first);
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].toString(), QStringLiteral("K00"));
        roofline.setHovered(QStringLiteral("K00"));
        QVERIFY(roofline.caption().startsWith(QLatin1String("K00: 500")));
        roofline.setHovered({});
        QVERIFY(roofline.caption().startsWith(QLatin1String("K08")));
        // Who cannot see it hears ceilings and states.
        const QString words = roofline.plot()->accessibleDescription();
        QVERIFY(words.contains(QLatin1String("bf16 940")) && words.contains(QLatin1String("K10: ")));
    }

    void withoutCeilingsItSaysSo()
    {
        RooflinePlot roofline;
        RooflineView view;
        view.path.missing = "No trial of this lineage has recorded what its device can do at most.";
        roofline.setView(view);
        QVERIFY(!roofline.plot()->isVisibleTo(&roofline));
        QVERIFY(roofline.plot()->accessibleDescription().contains(QLatin1String("No trial of this lineage")));
    }
};

KLINEAGE_UI_TEST(TestRooflinePlot)
#include "tst_rooflineplot.moc"
