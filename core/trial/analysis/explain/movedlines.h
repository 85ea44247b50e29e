// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/explain/timeparts.h"

#include <vector>

namespace klineage::gate {

/// Which lines of two texts stand in one row of their diff: of each line of the older text (1-based; element 0 is unused) the line of the
/// newer one, 0: it is gone. Empty: the texts were not compared.
using SameLines = std::vector<int>;

/// A line where warps spent more or less time than on the other side.
struct MovedLine {
    int before = 0;     ///< line of the older candidate; 0: it has none
    int after = 0;      ///< line of the newer one; 0: it is gone
    double deltaNs = 0; ///< after − before: less than 0 is time won
    std::string kernel; ///< where most of it is

    /// The side to look at: 0 the older one, when the line is gone, else 1.
    [[nodiscard]] int side() const { return after > 0 ? 1 : 0; }
    [[nodiscard]] int line() const { return after > 0 ? after : before; }
};

/// A run whose samples are looked at.
struct SampledRun {
    const Trial &trial;
    const TimeParts &parts; ///< from samples
    double ns = 0;          ///< its time
};

/// The lines whose samples with reasons of the group moved most, most first. Lines from elsewhere (line 0) are left out;
/// none when the texts were not compared.
[[nodiscard]] std::vector<MovedLine> movedLines(const SampledRun &before, const SampledRun &after,
                                                const std::string &group, const SameLines &same);

} // namespace klineage::gate
