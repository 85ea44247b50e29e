// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::lineage {

/// One row of the lineage table; all numbers come from the row's trial. Missing ones are empty.
struct TableRow {
    enum class Kind { State, Attempt, Branch };
    Kind kind = Kind::State;
    std::string id;
    std::string title;
    std::string parent;                 ///< state id; empty for K0
    const gate::Trial *trial = nullptr; ///< owned by the Lineage
    std::optional<gate::Interval> latencyNs;
    std::optional<gate::Interval> speedupToParent; ///< paired, from the trial
    std::optional<double>
        speedupToBaseline; ///< ratio of medians; baseline is K0 unless another state is pinned
    std::optional<gate::Interval> speedupToReference; ///< paired, from the trial
    std::string reference;                            ///< "openblas 0.3.21"
    std::string elsewhere; ///< the device of its trial where that is not deviceOf(): no figure is comparable
    std::string file;      ///< relative to the lineage's folder
    const Transition *step = nullptr; ///< to a state; owned by the Lineage; null for K0
    const Attempt *attempt = nullptr; ///< owned by the Lineage; null for other rows
};

/// The device that the figures of a lineage are of, so that one column or axis has one: that of most timed states, of the strongest of
/// those where two are as many; with no timed state that of the first timed trial. Empty: nothing was timed, or no trial says where.
[[nodiscard]] std::string deviceOf(const Lineage &lineage);
/// The device of a trial that ran on another one than `device`; empty: on that one, on none, or one of them is not said.
[[nodiscard]] std::string elsewhere(const gate::Trial *trial, std::string_view device);

/// Rows newest first, as the graph draws them: K* before its predecessors, and directly above each state what was tried from it
/// (branches, then attempts, newest first) — so a branch of K* is above K*. A branch's id is "trial:<id>". The Lineage must outlive
/// the rows. An unknown baseline means K0. Only trials of one device are compared with the baseline.
[[nodiscard]] std::vector<TableRow> lineageTable(const Lineage &lineage, std::string_view baselineState = {});

/// T_other / T_own from two trials that were not paired: the ratio of the medians, between the ratios of the far ends of their 95 %
/// intervals (wider than a 95 % interval of the ratio). Zeros when one of them was not timed.
[[nodiscard]] gate::Interval ratioOfMedians(const gate::Interval &otherNs, const gate::Interval &ownNs);

/// Geometric mean over lineages of K* to its vendor reference; lineages without one, and those that are a root alone, are left out and
/// counted.
struct GeometricMean {
    double value = 0;
    int counted = 0;
    int missing = 0;
};
[[nodiscard]] GeometricMean referenceGeometricMean(const std::vector<Lineage> &lineages);

} // namespace klineage::lineage
