// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tune/space.h"

#include "core/base/suggest.h"

#include <algorithm>
#include <limits>

namespace klineage::gate::tune {

namespace {

/// Without overflow at the ends of the type.
std::uint64_t distance(std::int64_t a, std::int64_t b)
{
    return a < b ? static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a)
                 : static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
}

std::string listOf(const std::vector<std::int64_t> &values)
{
    std::string text;
    for (const std::int64_t value : values)
        text += (text.empty() ? "" : ", ") + std::to_string(value);
    return text;
}

void sortOnce(std::vector<std::int64_t> &values)
{
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
}

Status checkNames(const std::vector<kernel::Tunable> &tunables,
                  const std::map<std::string, std::vector<std::int64_t>> &only)
{
    std::vector<std::string> known;
    for (const kernel::Tunable &tunable : tunables)
        known.push_back(tunable.name);
    for (const auto &[name, values] : only) {
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            const std::string suggestion = didYouMean(name, known);
            return fail(ErrorCode::InvalidInput, "The candidate declares no tunable '" + name + "'"
                                                     + (suggestion.empty() ? std::string(".") : suggestion));
        }
    }
    return {};
}

} // namespace

std::string nameOf(const Point &point)
{
    std::string text;
    for (const auto &[name, value] : point)
        text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
    return text.empty() ? "defaults" : text;
}

Result<Space> Space::of(const std::vector<kernel::Tunable> &tunables,
                        const std::map<std::string, std::vector<std::int64_t>> &only)
{
    if (auto checked = checkNames(tunables, only); !checked)
        return tl::unexpected(checked.error());
    Space space;
    for (const kernel::Tunable &tunable : tunables) {
        Axis axis{tunable.name, tunable.defaultValue, tunable.values};
        sortOnce(axis.values);
        if (const auto narrowed = only.find(tunable.name); narrowed != only.end()) {
            std::vector<std::int64_t> values = narrowed->second;
            sortOnce(values);
            for (const std::int64_t value : values) {
                if (!std::binary_search(axis.values.begin(), axis.values.end(), value))
                    return fail(ErrorCode::InvalidInput, "The tunable " + axis.name + " cannot be "
                                                             + std::to_string(value) + ": it declares "
                                                             + listOf(axis.values) + ".");
            }
            if (values.empty())
                return fail(ErrorCode::InvalidInput, "The tunable " + axis.name + " is given no value.");
            axis.values = std::move(values);
        }
        space.m_axes.push_back(std::move(axis));
    }
    return space;
}

std::uint64_t Space::size() const
{
    std::uint64_t size = 1;
    for (const Axis &axis : m_axes) {
        if (size > std::numeric_limits<std::uint64_t>::max() / axis.values.size())
            return std::numeric_limits<std::uint64_t>::max();
        size *= axis.values.size();
    }
    return size;
}

Coordinates Space::at(std::uint64_t index) const
{
    Coordinates coordinates(m_axes.size());
    for (std::size_t i = m_axes.size(); i > 0; --i) {
        coordinates[i - 1] = static_cast<std::size_t>(index % m_axes[i - 1].values.size());
        index /= m_axes[i - 1].values.size();
    }
    return coordinates;
}

Point Space::point(const Coordinates &coordinates) const
{
    Point point;
    for (std::size_t i = 0; i < m_axes.size(); ++i)
        point[m_axes[i].name] = m_axes[i].values[coordinates[i]];
    return point;
}

Point Space::defaults() const
{
    Point point;
    for (const Axis &axis : m_axes)
        point[axis.name] = axis.defaultValue;
    return point;
}

Coordinates Space::nearestToDefaults() const
{
    Coordinates coordinates;
    for (const Axis &axis : m_axes) {
        const auto nearest =
            std::min_element(axis.values.begin(), axis.values.end(), [&axis](std::int64_t a, std::int64_t b) {
                return distance(a, axis.defaultValue) < distance(b, axis.defaultValue);
            });
        coordinates.push_back(static_cast<std::size_t>(nearest - axis.values.begin()));
    }
    return coordinates;
}

} // namespace klineage::gate::tune
