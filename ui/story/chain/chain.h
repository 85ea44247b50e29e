// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "ui/runs/runentry.h"
#include "ui/story/picture/picture.h"
#include "ui/style/status.h"

#include <QString>

#include <vector>

namespace klineage::ui {

/// A state on the picture of its chain.
struct ChainPoint {
    QString id;       ///< "K03"; of a run "step 3"
    QString row;      ///< Selection row id; of a run the step's number
    QString title;    ///< of the step into it; of the first one its own
    QString category; ///< of the step into it; empty for K0
    QString card;     ///< of the step into it; may be empty
    QString
        bound;    ///< "compute", "memory", "latency", "mixed": what bounds it; empty: its trial does not tell
    QString step; ///< "2.31×", paired against the parent; empty: not measured
    gate::Interval speedup; ///< the same in numbers; zeros: not measured
    Tone tone = Tone::Neutral;
    double ns = 0; ///< 0: no latency was recorded
    double lowNs = 0;
    double highNs = 0;
    bool isGated = false;
    QString
        elsewhere; ///< "1.24 ms on AMD EPYC": gated on another device than the chain's, so that there is no ns here
    QString says; ///< a sentence with all of it
};

/// A rejected attempt beside the chain, or a branch.
struct ChainAttempt {
    QString id;
    QString row;
    QString title;
    double place = 0; ///< in states: 2.5 stands halfway from the third state to the fourth
    double ns = 0;    ///< 0: it failed, so that there is none
    std::size_t parent = 0;
    QString elsewhere; ///< as of a point; also "wrong on AMD EPYC"
    Glyph glyph = Glyph::Rejected;
    Tone tone = Tone::Warn;
    QString verdict; ///< "no gain", "wrong"
    QString says;
};

/// A lineage from K0 to K*, or a run from its root to its best, as recorded.
struct Chain {
    QString key;    ///< lineage key, "run:ID"
    QString name;   ///< "gemm · sm90"
    QString device; ///< all latencies are of this one
    std::vector<ChainPoint> points;
    std::vector<ChainAttempt> attempts; ///< rejected ones, or the steps of a run that brought nothing better
    std::vector<ChainAttempt> branches; ///< what nobody has named; lineages only
    QString reference;                  ///< the headline of the last state that has one; empty: none
    double referenceNs = 0;
    gate::Interval toReference; ///< of that state, paired; zeros: it was not timed beside it

    [[nodiscard]] const ChainPoint *lastTimed() const; ///< nullptr: none was
    [[nodiscard]] const ChainPoint *firstTimed() const;
};

[[nodiscard]] Chain chainOf(const lineage::Lineage &lineage);
/// The root, and each step that was the best so far; between them what was tried and did not become it.
[[nodiscard]] Chain chainOf(const RunEntry &run);

} // namespace klineage::ui
