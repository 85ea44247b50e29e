// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/table.h"
#include "ui/style/format.h"
#include "ui/style/status.h"

#include <QString>

#include <optional>
#include <vector>

namespace klineage::ui {

/// How a lineage is called beside its workload: "pocl", or "pocl · walked" where it has a name of its own.
[[nodiscard]] QString lineageLabel(const lineage::Lineage &lineage);

/// What a state is called where it stands for the step that leads to it. A lineage that was taken apart names its states after what was
/// taken away; there the step is called after its card, or its category and place.
[[nodiscard]] QString stepTitle(const lineage::Lineage &lineage, const lineage::State &state);

/// Between the parts of a title of which the last ones may be left out.
[[nodiscard]] QString titleSeparator();

/// How a row's node is drawn. Shapes differ as well as colours.
enum class NodeShape { Best, State, Ungated, Failed, Rejected, Branch };

/// The graph in a row: the main line on lane 0, and what was tried beside it on lane 1.
struct GraphCell {
    NodeShape node = NodeShape::State;
    int lane = 0;
    bool lineAbove = false;  ///< the main line enters from the row above
    bool lineBelow = false;  ///< the main line leaves into the row below
    bool parentBelow = true; ///< lane 1: which way the connector bends to the main line
    friend bool operator==(const GraphCell &, const GraphCell &) = default;
};

/// One row of a lineage as it is shown: every text is made beforehand.
struct LineageRow {
    lineage::TableRow::Kind kind = lineage::TableRow::Kind::State;
    QString id;    ///< Selection row id
    QString label; ///< "K03", "R03a", "tried"
    QString
        title; ///< of what was tried its parts with titleSeparator() between them; the last one ends in the time
    QString parent;    ///< state id
    QString file;      ///< absolute path of the candidate
    QString viewedKey; ///< what Viewed calls it
    GraphCell graph;
    StageOutcomes stages;
    std::optional<StatusStyle> verdict; ///< nothing when not gated yet
    bool isCorrect = false;
    bool isElsewhere = false; ///< gated on another device than the columns are of

    QString latency;
    QString step;
    QString toBaseline;
    QString toReference;
    Tone stepTone = Tone::Neutral;
    bool isDisturbed = false; ///< its times: the tool tip says by what
    QString instead; ///< of the numbers: "≠ wrong", "1.24 ms on AMD EPYC"; empty: there are numbers
    QString tooltip; ///< the verdict in whole sentences, with intervals

    std::optional<double> latencyNs; ///< numbers behind the texts, for export
    std::optional<double> stepSpeedup;
    std::optional<double> baselineSpeedup;
    std::optional<double> referenceSpeedup;

    friend bool operator==(const LineageRow &a, const LineageRow &b);
};

/// A lineage as it is shown.
struct LineageRows {
    std::vector<LineageRow> rows;
    LatencyUnit unit;
    QString device;   ///< that all figures of the columns are of
    QString baseline; ///< id of the state that toBaseline compares with
    /// Provider that toReference compares with, the same for all rows that were timed beside it: "openblas"; a row that was not says
    /// which it was timed beside. Empty when no row was timed beside one.
    QString reference;
};

enum class Direction {
    Backward, ///< K* first: how the lineage was found
    Forward,  ///< K0 first: how a kernel is optimized
};

[[nodiscard]] LineageRows makeLineageRows(const lineage::Lineage &lineage, const QString &baseline,
                                          Direction direction);

} // namespace klineage::ui
