// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidate.h"

#include <map>
#include <string>
#include <vector>

namespace klineage::gate::tune {

/// A value for every tunable of a candidate.
using Point = std::map<std::string, std::int64_t>;
/// "BK=8 BM=64"; "defaults" for a candidate without tunables.
[[nodiscard]] std::string nameOf(const Point &point);

/// An index into the values of each axis.
using Coordinates = std::vector<std::size_t>;

struct Axis {
    std::string name;
    std::int64_t defaultValue = 0;    ///< need not be among values, when those were narrowed
    std::vector<std::int64_t> values; ///< ascending, each once; at least one
};

/// Every combination of the declared values of a candidate's tunables. Immutable.
class Space
{
public:
    /// only: the values to look at, for tunables that are not to be swept over all that they declare. InvalidInput when it names a
    /// tunable or a value that is not declared, or no value.
    [[nodiscard]] static Result<Space> of(const std::vector<kernel::Tunable> &tunables,
                                          const std::map<std::string, std::vector<std::int64_t>> &only = {});

    [[nodiscard]] const std::vector<Axis> &axes() const { return m_axes; }
    /// Number of points; the largest number when there are more than that.
    [[nodiscard]] std::uint64_t size() const;
    [[nodiscard]] Coordinates at(std::uint64_t index) const; ///< index < size(); the last axis varies fastest
    [[nodiscard]] Point point(const Coordinates &coordinates) const;

    [[nodiscard]] Point defaults() const; ///< may lie outside of the space
    [[nodiscard]] Coordinates nearestToDefaults() const;

private:
    std::vector<Axis> m_axes;
};

} // namespace klineage::gate::tune
