// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <string>
#include <string_view>
#include <vector>

namespace klineage::lineage {

enum class RecordOutcome {
    Added,
    Duplicate,        ///< a trial with this id is there already; nothing was written
    UnknownCandidate, ///< the candidate is no file of the lineage and its text was not given; nothing was written
};

/// Adds a trial to the lineage on disk. Its `file` becomes the state, attempt or branch file that has the candidate's sha-256;
/// otherwise candidateText (which must have that sha-256) is stored as a branch first. Fails with InvalidInput when the trial belongs
/// to another workload or platform. A kill leaves at worst a branch file without a trial.
[[nodiscard]] Result<RecordOutcome> recordTrial(const Lineage &lineage, gate::Trial trial,
                                                std::string_view candidateText = {});

/// Makes the given trials stand for the states and attempts whose files they measured, by rewriting lineage.toml (its comments are
/// lost). A state after K0 only takes a correct trial that was compared with the state before it. Among several the last named wins.
/// Returns the ids of the states and attempts that changed.
[[nodiscard]] Result<std::vector<std::string>> assignTrials(const std::filesystem::path &lineageDirectory,
                                                            const std::vector<std::string> &trialIds);

} // namespace klineage::lineage
