// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tune/search.h"

#include "core/base/random.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace klineage::gate::tune {

namespace {

/// Numbers in sequence; the same from the same seed on every machine, which the standard's distributions do not promise.
class Draws
{
public:
    explicit Draws(std::uint64_t seed)
        : m_random(seed)
    {}
    [[nodiscard]] std::size_t below(std::size_t count)
    {
        return static_cast<std::size_t>(m_random.bits(m_counter++) % count);
    }
    template <typename T>
    void shuffle(std::vector<T> &items)
    {
        for (std::size_t i = items.size(); i > 1; --i)
            std::swap(items[i - 1], items[below(i)]);
    }

private:
    CounterRandom m_random;
    std::uint64_t m_counter = 0;
};

class Exhaustive final : public Search
{
public:
    Exhaustive(const Space &space, std::uint64_t seed)
        : m_space(space)
        , m_draws(seed)
    {}
    [[nodiscard]] const char *name() const override { return "exhaustive"; }
    [[nodiscard]] std::vector<Coordinates> next() override
    {
        std::vector<Coordinates> points;
        if (std::exchange(m_done, true))
            return points;
        for (std::uint64_t i = 0; i < m_space.size(); ++i) {
            if (Coordinates coordinates = m_space.at(i); !m_told.contains(coordinates))
                points.push_back(std::move(coordinates));
        }
        m_draws.shuffle(points);
        return points;
    }
    void tell(const Coordinates &coordinates, std::optional<double>) override { m_told.insert(coordinates); }

private:
    Space m_space;
    Draws m_draws;
    std::set<Coordinates> m_told;
    bool m_done = false;
};

class Local final : public Search
{
public:
    Local(const Space &space, std::uint64_t seed)
        : m_space(space)
        , m_draws(seed)
        , m_here(space.nearestToDefaults())
    {
        for (std::size_t i = 0; i < space.axes().size(); ++i) {
            if (space.axes()[i].values.size() > 1)
                m_order.push_back(i);
        }
        m_draws.shuffle(m_order);
    }
    [[nodiscard]] const char *name() const override { return "local"; }
    [[nodiscard]] std::vector<Coordinates> next() override;
    void tell(const Coordinates &coordinates, std::optional<double> speed) override
    {
        m_told[coordinates] = speed;
        if (speed && (!m_best || *speed > *m_told[*m_best]))
            m_best = coordinates;
    }

private:
    [[nodiscard]] std::vector<Coordinates> untold(const std::vector<Coordinates> &points) const;
    [[nodiscard]] std::vector<Coordinates> line(std::size_t axis) const;
    void moveAlong(std::size_t axis);
    [[nodiscard]] std::optional<Coordinates> drawAnew();

    Space m_space;
    Draws m_draws;
    std::map<Coordinates, std::optional<double>> m_told;
    std::optional<Coordinates> m_best;
    Coordinates m_here;
    std::vector<std::size_t> m_order; ///< axes with a choice
    std::size_t m_turn = 0;           ///< index into m_order of the line that is being looked at
    std::size_t m_stale = 0;          ///< lines in a row that brought no gain
};

std::vector<Coordinates> Local::untold(const std::vector<Coordinates> &points) const
{
    std::vector<Coordinates> result;
    std::copy_if(points.begin(), points.end(), std::back_inserter(result),
                 [this](const Coordinates &point) { return !m_told.contains(point); });
    return result;
}

/// The other values of an axis, nearest first: a value that is one step away is likelier to be good than one at the far end.
std::vector<Coordinates> Local::line(std::size_t axis) const
{
    std::vector<Coordinates> points;
    const std::size_t count = m_space.axes()[axis].values.size();
    for (std::size_t step = 1; step < count && points.size() < lineLimit; ++step) {
        Coordinates point = m_here;
        if (m_here[axis] + step < count) {
            point[axis] = m_here[axis] + step;
            points.push_back(point);
        }
        if (m_here[axis] >= step && points.size() < lineLimit) {
            point[axis] = m_here[axis] - step;
            points.push_back(point);
        }
    }
    return points;
}

void Local::moveAlong(std::size_t axis)
{
    const auto speedOf = [this](const Coordinates &point) {
        const auto told = m_told.find(point);
        return told == m_told.end() ? 0.0 : told->second.value_or(0.0);
    };
    const std::vector<Coordinates> points = line(axis);
    const auto fastest =
        std::max_element(points.begin(), points.end(),
                         [&speedOf](const auto &a, const auto &b) { return speedOf(a) < speedOf(b); });
    if (fastest != points.end() && speedOf(*fastest) > speedOf(m_here) * leastGain) {
        m_here = *fastest;
        m_stale = 0;
    }
    ++m_stale; // the line that was just looked at holds no more
    m_turn = (m_turn + 1) % m_order.size();
}

std::optional<Coordinates> Local::drawAnew()
{
    // Two tunables at least, since one was just tried; more and more of them when everything near has been seen.
    constexpr int attempts = 64;
    for (std::size_t changed = 2; changed <= m_order.size() + 1; ++changed) {
        for (int attempt = 0; attempt < attempts; ++attempt) {
            Coordinates point = m_best.value_or(m_here);
            std::vector<std::size_t> axes = m_order;
            m_draws.shuffle(axes);
            axes.resize(std::min(changed, axes.size()));
            for (const std::size_t axis : axes)
                point[axis] = m_draws.below(m_space.axes()[axis].values.size());
            if (!m_told.contains(point))
                return point;
        }
    }
    return std::nullopt;
}

std::vector<Coordinates> Local::next()
{
    if (!m_told.contains(m_here))
        return {m_here};
    // A line may have been told already, as a whole, where it crosses earlier ones.
    while (!m_order.empty() && m_stale < m_order.size()) {
        if (auto points = untold(line(m_order[m_turn])); !points.empty())
            return points;
        moveAlong(m_order[m_turn]);
    }
    if (m_order.empty())
        return {};
    const auto drawn = drawAnew();
    if (!drawn)
        return {};
    m_here = *drawn;
    m_stale = 0;
    m_draws.shuffle(m_order);
    m_turn = 0;
    return {m_here};
}

} // namespace

std::unique_ptr<Search> exhaustiveSearch(const Space &space, std::uint64_t seed)
{
    return std::make_unique<Exhaustive>(space, seed);
}

std::unique_ptr<Search> localSearch(const Space &space, std::uint64_t seed)
{
    return std::make_unique<Local>(space, seed);
}

std::unique_ptr<Search> chooseSearch(const Space &space, std::uint64_t budget, std::uint64_t seed)
{
    return space.size() <= budget ? exhaustiveSearch(space, seed) : localSearch(space, seed);
}

} // namespace klineage::gate::tune
