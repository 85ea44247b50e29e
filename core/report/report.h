// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/report/document.h"
#include "core/run/experiment/results.h"
#include "core/workspace/workspace.h"

#include <optional>
#include <string>

namespace klineage::report {

// Names of the figures that a report may have.
inline constexpr const char *chainFigure = "chain";       ///< of a lineage: latency state by state
inline constexpr const char *rooflineFigure = "roofline"; ///< of a lineage: its states under the ceilings
inline constexpr const char *trialsFigure = "trials";     ///< of a lineage: its trials in the order recorded
inline constexpr const char *roundtripFigure = "roundtrip";   ///< of a lineage: come to again, trial by trial
inline constexpr const char *runFigure = "run";               ///< of a run: running best against dollars
inline constexpr const char *experimentFigure = "experiment"; ///< the same of each root's runs

/// What a report is of: one of the three.
struct Subject {
    const lineage::Lineage *lineage = nullptr; ///< of the workspace
    std::optional<run::RunRecord> run;
    std::optional<run::Experiment> experiment;
};

/// A lineage ("gemm/sm90"), a run ("run:ID", ID, or its folder) or an experiment ("experiment:NAME", NAME, or its folder). NotFound
/// names the nearest.
[[nodiscard]] Result<Subject> findSubject(const Workspace &workspace, const std::string &name);

/// Everything that is recorded of it; candidates are read for the diffs.
[[nodiscard]] Document makeReport(const Workspace &workspace, const Subject &subject);

} // namespace klineage::report
