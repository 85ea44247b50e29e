// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

namespace klineage::lineage {

/// One row of the lineage table; all numbers come from the row's trial. Missing ones are empty.
struct TableRow {
    enum class Kind { State, Attempt, Branch };
    Kind kind = Kind::State;
    std::string id;
    std::string title;
    std::string parent;                              ///< state id; empty for K0
    const gate::Trial *trial = nullptr;              ///< owned by the Lineage
    std::optional<gate::Interval> latencyNs;
    std::optional<gate::Interval> speedupToParent;   ///< paired, from the trial
    std::optional<double> speedupToBaseline;         ///< ratio of medians; baseline is K0 unless another state is pinned
    std::optional<gate::Interval> speedupToReference;///< paired, from the trial
    std::string reference;                           ///< "openblas 0.3.21"
};

/// Rows newest first: K* at the top, attempts and branches below the row of the state above their parent, as the graph draws them.
/// The Lineage must outlive the rows.
[[nodiscard]] std::vector<TableRow> lineageTable(const Lineage &lineage, std::string_view baselineState = {});

/// Geometric mean over lineages of K* to its vendor reference; lineages without one are left out and counted.
struct GeometricMean {
    double value = 0;
    int counted = 0;
    int missing = 0;
};
[[nodiscard]] GeometricMean referenceGeometricMean(const std::vector<Lineage> &lineages);

} // namespace klineage::lineage
