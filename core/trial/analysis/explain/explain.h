// SPDX-License-Identifier: GPL-3.0-or-later
//
// Why a step changed the time of a kernel, from what two trials kept. Pure.
//
// The times of both runs are divided into the same parts (timeparts.h), so that the changes of the parts add up to the change of the whole.
// Causes are the parts that changed most in its direction: what each can account for is the change of its time. Where other parts changed
// the other way, the causes together account for more than all of it, and the explanation says so.
#pragma once

#include "core/trial/analysis/explain/movedlines.h"

#include <optional>
#include <string>
#include <vector>

namespace klineage::gate {

/// A figure of both trials, of the whole run. A side that has none is empty.
struct FigurePair {
    std::string metric; ///< Metric::name
    std::string unit;
    std::optional<double> before;
    std::optional<double> after;
};

struct Cause {
    std::string group; ///< TimeGroup::id
    std::string title; ///< "Waiting for shared memory or special functions"
    double before = 0; ///< share of the older run's time, 0 … 1
    double after = 0;
    double beforeNs = 0; ///< the same as times
    double afterNs = 0;
    double shareOfDifference = 0; ///< of the difference of the run times, above 0; may exceed 1
    std::string reason; ///< what the samples say of most of it: "mio_throttle"; empty without reasons
    std::string
        metric; ///< the figure to look at first: one that both trials have, else one of them; empty: none
    std::string kernel;              ///< where most of the change is; empty for what lies between kernels
    std::vector<FigurePair> figures; ///< of `metric`, then others that tell more
    std::vector<MovedLine> lines;    ///< at most three

    [[nodiscard]] double deltaNs() const { return afterNs - beforeNs; }
};

/// What the trials say of a step.
struct Explanation {
    std::string beforeName; ///< "K07"
    std::string afterName;
    bool paired = false; ///< timed in the same rounds; else the ratio and its ends are those of two medians
    double beforeNs = 0; ///< of the same rounds when paired
    double afterNs = 0;
    Interval speedup; ///< beforeNs / afterNs

    TimeSource source = TimeSource::None;
    std::vector<Cause> causes;         ///< the three largest, most first
    double together = 0;               ///< sum of their shareOfDifference
    std::vector<Cause> against;        ///< parts that changed the other way, most first; without lines
    std::string nothing;               ///< why nothing is ranked: whole sentences; empty when something is
    std::vector<std::string> kept;     ///< what each trial kept, a sentence each; only when nothing is ranked
    std::vector<std::string> cautions; ///< whole sentences
    std::vector<FigurePair>
        figures; ///< in any case: what counters and compiler said of both, as far as they changed

    [[nodiscard]] double differenceNs() const { return afterNs - beforeNs; }
};

/// A trial and what to call it.
struct NamedTrial {
    std::string name;
    const Trial &trial;
};

/// paired: the newer trial's comparison with the older candidate; nullptr: it was not timed beside it.
[[nodiscard]] Explanation explainStep(const NamedTrial &before, const NamedTrial &after,
                                      const Comparison *paired, const SameLines &same = {});

} // namespace klineage::gate
