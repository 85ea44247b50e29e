// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tune/search.h"

#include <QtTest>

#include <cmath>
#include <functional>
#include <set>

using namespace klineage;
using namespace klineage::gate::tune;

namespace {

using Speed = std::function<std::optional<double>(const Point &)>;

struct Walk {
    std::vector<Point> visited; ///< after the defaults
    std::optional<Point> best;
    double bestSpeed = 0;
    bool repeated = false;
};

/// Runs a search against a function for at most `budget` points.
Walk walk(const Space &space, Search &search, const Speed &speed, std::size_t budget)
{
    Walk result;
    std::set<Coordinates> seen = {space.nearestToDefaults()};
    search.tell(space.nearestToDefaults(), speed(space.defaults()));
    for (auto batch = search.next(); !batch.empty(); batch = search.next()) {
        for (const Coordinates &coordinates : batch) {
            if (result.visited.size() >= budget)
                return result;
            result.repeated = !seen.insert(coordinates).second || result.repeated;
            const Point point = space.point(coordinates);
            result.visited.push_back(point);
            const auto told = speed(point);
            search.tell(coordinates, told);
            if (told && *told > result.bestSpeed) {
                result.bestSpeed = *told;
                result.best = point;
            }
        }
    }
    return result;
}

std::vector<std::int64_t> powers(int count)
{
    std::vector<std::int64_t> values;
    for (int i = 0; i < count; ++i)
        values.push_back(std::int64_t{1} << i);
    return values;
}

Space bigSpace()
{
    return *Space::of({{"A", 1, powers(12)}, {"B", 1, powers(12)}, {"C", 1, powers(12)}, {"D", 3, {3}}});
}

/// One hill, with a cliff: A·B above 2^14 does not fit.
std::optional<double> hill(const Point &point)
{
    const double a = std::log2(point.at("A"));
    const double b = std::log2(point.at("B"));
    const double c = std::log2(point.at("C"));
    if (a + b > 14)
        return std::nullopt;
    return 2 - 0.02 * (std::pow(a - 8, 2) + std::pow(b - 5, 2) + std::pow(c - 3, 2));
}

} // namespace

class TestTuneSearch : public QObject
{
    Q_OBJECT
private slots:
    void smallSpacesAreSeenWhole()
    {
        const auto space = Space::of({{"A", 2, {1, 2, 4}}, {"B", 1, {1, 2}}});
        const auto search = chooseSearch(*space, 6, 1);
        QCOMPARE(std::string(search->name()), std::string("exhaustive"));
        const Walk result = walk(
            *space, *search, [](const Point &) { return std::nullopt; }, 100);
        QCOMPARE(result.visited.size(), std::size_t{5}); // all but the defaults
        QVERIFY(!result.repeated);
        QCOMPARE(std::string(chooseSearch(*space, 5, 1)->name()), std::string("local"));
    }

    void findsTheTopOfAHill()
    {
        const Space space = bigSpace(); // 1728 points
        const Walk result = walk(space, *chooseSearch(space, 60, 1), hill, 60);
        QVERIFY(!result.repeated);
        QVERIFY(result.best);
        QCOMPARE(nameOf(*result.best), std::string("A=256 B=32 C=8 D=3"));
    }

    void leavesALocalOptimum()
    {
        // Two hills; the one by the defaults is the lower one, and no single tunable leads from it to the other.
        const Space space = bigSpace();
        const auto speed = [](const Point &point) -> std::optional<double> {
            const double a = std::log2(point.at("A"));
            const double b = std::log2(point.at("B"));
            return std::max(1.2 - 0.1 * (a + b), 1.5 - 0.1 * (std::pow(a - 9, 2) + std::pow(b - 9, 2)));
        };
        int found = 0;
        for (std::uint64_t seed = 1; seed <= 10; ++seed)
            found += walk(space, *localSearch(space, seed), speed, 200).bestSpeed == 1.5 ? 1 : 0;
        QVERIFY2(found >= 9, std::to_string(found).c_str());
    }

    void sameSeedSamePath()
    {
        const Space space = bigSpace();
        const auto path = [&space](std::uint64_t seed) {
            return walk(space, *localSearch(space, seed), hill, 50).visited;
        };
        QVERIFY(path(7) == path(7));
        QVERIFY(path(7) != path(8));
    }

    void allRefusedEndsWhenAllIsSeen()
    {
        const auto space = Space::of({{"A", 1, {1, 2, 4}}, {"B", 1, {1, 2, 4}}, {"C", 1, {1, 2}}});
        const Walk result = walk(
            *space, *localSearch(*space, 3), [](const Point &) { return std::nullopt; }, 1000);
        QVERIFY(!result.repeated);
        QCOMPARE(result.visited.size(), std::size_t{17});
    }

    void nothingToChoose()
    {
        const auto space = Space::of({{"A", 1, {1}}});
        const auto search = localSearch(*space, 1);
        search->tell(space->nearestToDefaults(), 1.0);
        QVERIFY(search->next().empty());
    }
};

QTEST_APPLESS_MAIN(TestTuneSearch)
#include "tst_tunesearch.moc"
