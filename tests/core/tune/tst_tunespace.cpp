// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tune/space.h"

#include <QtTest>

#include <limits>
#include <set>

using namespace klineage;
using namespace klineage::gate::tune;

namespace {

const std::vector<kernel::Tunable> tunables = {{"TILE", 16, {32, 8, 16}}, {"UNROLL", 1, {1, 4}}};

} // namespace

class TestTuneSpace : public QObject
{
    Q_OBJECT
private slots:
    void everyPointOnce()
    {
        const auto space = Space::of(tunables);
        QVERIFY(space);
        QCOMPARE(space->size(), std::uint64_t{6});
        std::set<Point> points;
        for (std::uint64_t i = 0; i < space->size(); ++i)
            points.insert(space->point(space->at(i)));
        QCOMPARE(points.size(), std::size_t{6});
        QCOMPARE(nameOf(space->point(space->at(0))), std::string("TILE=8 UNROLL=1"));
        QCOMPARE(nameOf(space->point(space->at(1))), std::string("TILE=8 UNROLL=4"));
        QCOMPARE(nameOf(space->defaults()), std::string("TILE=16 UNROLL=1"));
        QCOMPARE(space->point(space->nearestToDefaults()), space->defaults());
    }

    void narrowed()
    {
        const auto space = Space::of(tunables, {{"TILE", {32, 8, 8}}});
        QVERIFY(space);
        QCOMPARE(space->size(), std::uint64_t{4});
        // The defaults lie outside now; the search begins as near as it can.
        QCOMPARE(space->defaults().at("TILE"), std::int64_t{16});
        QCOMPARE(space->point(space->nearestToDefaults()).at("TILE"), std::int64_t{8});
    }

    void withoutTunables()
    {
        const auto space = Space::of({});
        QVERIFY(space);
        QCOMPARE(space->size(), std::uint64_t{1});
        QCOMPARE(nameOf(space->point(space->at(0))), std::string("defaults"));
    }

    void hugeSizesDoNotOverflow()
    {
        std::vector<kernel::Tunable> many;
        for (int i = 0; i < 64; ++i)
            many.push_back({"T" + std::to_string(i), 0, {0, 1, 2, 3}});
        const auto space = Space::of(many);
        QVERIFY(space);
        QCOMPARE(space->size(), std::numeric_limits<std::uint64_t>::max());
        const std::int64_t least = std::numeric_limits<std::int64_t>::min();
        const std::int64_t most = std::numeric_limits<std::int64_t>::max();
        const auto ends = Space::of({{"T", most, {least, 0, most}}}, {{"T", {least, 0}}});
        QVERIFY(ends);
        QCOMPARE(ends->point(ends->nearestToDefaults()).at("T"), std::int64_t{0});
    }

    void whatIsNotDeclaredIsRefused()
    {
        const auto name = Space::of(tunables, {{"TILES", {8}}});
        QVERIFY(!name);
        QVERIFY(name.error().code == ErrorCode::InvalidInput);
        QVERIFY2(name.error().message.find("TILE") != std::string::npos, name.error().message.c_str());
        const auto value = Space::of(tunables, {{"TILE", {8, 12}}});
        QVERIFY(!value);
        QCOMPARE(value.error().message, std::string("The tunable TILE cannot be 12: it declares 8, 16, 32."));
        QVERIFY(!Space::of(tunables, {{"TILE", {}}}));
    }
};

QTEST_APPLESS_MAIN(TestTuneSpace)
#include "tst_tunespace.moc"
