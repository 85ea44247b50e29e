// SPDX-License-Identifier: GPL-3.0-or-later
// What the window promises about its speed, row by row: p50, p95 and the goal.
#include "uirows.h"

namespace klineage::bench {

namespace {

void run(Reporter &reporter)
{
    firstWindow(reporter);
    steps(reporter);
    layoutSwitches(reporter);
    longDiff(reporter);
    highlighting(reporter);
    graphFrames(reporter);
    plotFrames(reporter);
    filterKeys(reporter);
}

const Group group("ui", "all that the window promises: start, step, layout, diff, graph, plots, filter",
                  &run);

} // namespace

} // namespace klineage::bench
