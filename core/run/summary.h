// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/journal.h"

#include <optional>
#include <string>
#include <vector>

namespace klineage::run {

/// T_ref of a run: the reference that was the fastest correct one beside the root (its first trial), or without any the root itself.
struct Reference {
    std::string name;       ///< "openblas"; "root"
    double nanoseconds = 0; ///< beside the root; for trials in which the reference did not take part
    std::string candidate;  ///< sha-256 of the root, when that is the reference
};
[[nodiscard]] Reference referenceOf(const gate::Trial &root);
/// T_ref / T_gen from the paired rounds where the reference took part (the root: where it is the parent), otherwise the ratio of
/// medians; 0 unless correct and timed.
[[nodiscard]] double speedupOf(const gate::Trial &trial, const Reference &reference);

/// A point of the trajectory: after a step.
struct TrajectoryPoint {
    int step = 0;
    double dollars = 0; ///< of the run up to and with the step
    double best = 0;    ///< running maximum
    double speedup = 0; ///< of the step's candidate; 0: none, or not measured
    int questions = 0;  ///< asked up to and with the step
    std::string action;
    std::string outcome;
};

/// What a run came to.
struct Summary {
    Reference reference;
    double rootSpeedup = 0;
    double best = 0;         ///< running maximum of the valid candidates
    double finalSpeedup = 0; ///< the audited candidate's, measured anew; without an audit the best
    gate::Interval gain;     ///< of the audited candidate: T_root / T_gen, paired; zeros without an audit
    bool improved = false;   ///< finalSpeedup is of a candidate, not of the root
    bool audited = false;
    std::string candidate; ///< sha-256 of the candidate that finalSpeedup is of
    std::string trial;
    int questions = 0; ///< steps with an exchange
    int valid = 0;
    int failed = 0;
    int wrappers = 0;
    double dollars = 0;
    double loadDollars = 0; ///< of them for loading cards: the plateau
    std::vector<TrajectoryPoint> trajectory;
};
/// Questions that had been asked, and dollars spent, when the running best first was at least `gain` times the root (by the ratios to the
/// reference, as the trajectory has them); nothing when it never was.
struct Reached {
    int questions = 0;
    double dollars = 0;
};
[[nodiscard]] std::optional<Reached> reachedAt(const Summary &summary, double gain);

[[nodiscard]] Summary summarize(const RunRecord &run);

/// A speedup in a table: its shortest text; empty for 0, which is no speedup but none that was measured.
[[nodiscard]] std::string measuredText(double speedup);
/// "step,dollars,best,speedup,action,outcome" and a line for each point; best and speedup are empty where nothing was measured.
[[nodiscard]] std::string trajectoryCsv(const Summary &summary);

} // namespace klineage::run
