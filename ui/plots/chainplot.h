// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <QString>

#include <vector>

class QCustomPlot;

namespace klineage::ui {

/// A state on the picture of its chain.
struct ChainPoint {
    QString id;
    QString category; ///< of the step into it; empty for K0
    QString step;     ///< "2.31×", paired against the parent; empty: not measured
    double ns = 0;    ///< 0: no latency was recorded
    double lowNs = 0;
    double highNs = 0;
};

/// A rejected attempt beside the chain.
struct ChainAttempt {
    QString id;
    double place = 0; ///< in states: 2.5 stands halfway from the third state to the fourth
    double ns = 0;    ///< 0: it failed, so that there is none
};

/// A lineage from K0 to K*, as recorded.
struct Chain {
    std::vector<ChainPoint> points;
    std::vector<ChainAttempt> attempts;
    QString reference; ///< the headline of the last state that has one; empty: none
    double referenceNs = 0;
};

[[nodiscard]] Chain chainOf(const lineage::Lineage &lineage);

/// Latency of the states on a logarithmic axis, with the speedup of each step, the reference as a line, and what was rejected between
/// the states: ◇ where it has a latency, △ below where it failed. Replaces what the plot shows.
void drawChain(QCustomPlot &plot, const Chain &chain);

} // namespace klineage::ui
