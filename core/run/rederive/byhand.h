// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/recordjobs.h"
#include "core/run/rederive/rederivation.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

// Deriving the steps of a lineage again where author and device do not meet: prompts go out as files, replies come back as files, the
// gate runs as a batch elsewhere, and its trials decide, by the rules of a run (rederivation.h). What a reply came to is logged in the
// lineage's folder; a try that was not accepted is kept as a branch.

namespace klineage::run {

/// Which transitions, and where their files are.
struct ByHand {
    const lineage::Lineage &lineage;
    std::filesystem::path folder;
    std::string only; ///< id of the state that is derived again; empty: all
};

/// A transition and how far it has come.
struct HandRow {
    std::string lineage; ///< key
    std::string from;
    std::string to;
    int number = 0; ///< of the try: 0 is the first
    /// "recorded": it has a re-derivation. "asked": the prompt was written now. "waiting": for the reply. "answered". "ready": to be gated.
    /// "ungated": its trials are not there. "failed": the reply cannot be used. "accepted", "rejected", "stronger", "unsteady".
    std::string outcome;
    std::string reason{};
    std::optional<double> share{}; ///< of the stronger state's time that it takes
    std::filesystem::path file{};  ///< what is to be read next: a prompt, a problem
};

/// Writes the prompts that are missing. A prompt that was answered is left as it is.
[[nodiscard]] Result<std::vector<HandRow>> askByHand(const ByHand &work);

struct HandJobs {
    std::vector<HandRow> rows;
    std::vector<lineage::RecordJob>
        jobs; ///< two a reply: against the simpler state and against the stronger one
};
/// Reads the replies, writes their candidates beside them, or why they cannot be used.
[[nodiscard]] Result<HandJobs> jobsByHand(const ByHand &work);

/// Decides by the trials given and those of the lineage: stores what is accepted and keeps the rest as branches, both with their trials,
/// logs it, and writes the prompt of the next try. Judges a reply once.
[[nodiscard]] Result<std::vector<HandRow>> judgeByHand(const ByHand &work,
                                                       const std::vector<gate::Trial> &trials);

} // namespace klineage::run
