// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "ui/runs/runentry.h"
#include "ui/story/picture/picture.h"

namespace klineage::ui {

/// A candidate of a search, in the order in which they came.
struct LaneNode {
    int parent = -1;      ///< an earlier one; -1: none
    int island = 0;       ///< 0: of none
    bool isAside = false; ///< never in the lane of its parent: what was not taken
    Glyph glyph = Glyph::Disc;
    Ink ink;
    QString row;
    QString label; ///< "K05\n196 µs"
    QString title;
    QString value;     ///< for the table: latency
    double number = 0; ///< behind it, nanoseconds; 0: none
    QString says;
};

/// A branching lineage or a run.
struct LaneGraph {
    QString key; ///< lineage key, "run:ID"
    QString name;
    std::vector<LaneNode> nodes;
};

[[nodiscard]] LaneGraph laneGraphOf(const lineage::Lineage &lineage);
[[nodiscard]] LaneGraph laneGraphOf(const RunEntry &run);

/// Where each node stands: the lane of the way on from it, counted from the top over the bands of all islands.
struct Lanes {
    std::vector<int> laneOf; ///< by node
    struct Band {
        int island = 0;
        int first = 0;
        int count = 0;
    };
    std::vector<Band> bands;
};
/// The child with the most descendants, of those that are not aside, goes on in its parent's lane when both are of one island; every other begins a lane that is free
/// for as long as it goes on. O(n log n). Pure.
[[nodiscard]] Lanes layOutLanes(const std::vector<LaneNode> &nodes);

/// The graph with time to the right and a lane for each branch, islands as bands. Pure; of 100,000 nodes too.
[[nodiscard]] Picture lanePicture(const LaneGraph &graph);

} // namespace klineage::ui
