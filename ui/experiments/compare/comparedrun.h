// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/runentry.h"

#include <vector>

namespace klineage::ui {

/// A speedup and what it rests on.
struct SpeedupFigure {
    double value = 0; ///< T_against / T_gen; 0: there is none
    QString against;  ///< name of the reference; "root"
    bool paired =
        false;      ///< of rounds in which both took part; otherwise a ratio of medians, or of two speedups
    double low = 0; ///< 95 %, of what was paired; 0: not known
    double high = 0;
};

/// A recorded run, and the speedups that it is compared by. A value: made on any thread.
struct ComparedRun {
    RunEntryPtr run;
    QString experiment;  ///< its folder's name; empty: the run is the workspace's own
    SpeedupFigure root;  ///< of the root over the run's reference
    SpeedupFigure best;  ///< of the best valid step over the reference
    SpeedupFigure final; ///< of the audited candidate over the reference, without an audit of the best
    SpeedupFigure gain;  ///< of the final candidate over the root

    [[nodiscard]] QString key() const; ///< unique: "cards-on-hopper/heldout-…-s1"
    [[nodiscard]] QString runsDirectory() const;
    /// It is over and brought a candidate that is faster than the root.
    [[nodiscard]] bool isSuccess() const;
};

[[nodiscard]] ComparedRun compareRun(const RunEntryPtr &run, const QString &experiment);

/// Of the experiments in these places (experimentfolders.h), read again only where something may have changed since `known`. Any thread.
[[nodiscard]] std::vector<ComparedRun> readExperimentRuns(const std::vector<std::filesystem::path> &places,
                                                          const std::vector<ComparedRun> &known,
                                                          QStringList *problems);

} // namespace klineage::ui
