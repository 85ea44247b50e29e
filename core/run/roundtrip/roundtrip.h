// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/recordjobs.h"
#include "core/run/roundtrip/roundtriplog.h"
#include "core/workspace/workspace.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Roundtrip recovery of a whole lineage: an author is given its first state and the cards, and is to come as near to the last one as a
/// share of its speed. Several trials an arm, in which cards are shown whole, without their building blocks, or not at all. Author and
/// device meet only through files, as in rederive/byhand.h; one further try follows a kernel that does not reach it.
namespace klineage::run {

/// Of a trial's replies.
inline constexpr int roundtripTries = 2;

struct RoundtripWork {
    const Workspace &workspace;
    const lineage::Lineage &lineage; ///< of the workspace; has two states at least
    std::filesystem::path folder;    ///< of prompts and replies
    std::vector<std::string> arms;   ///< "none", "no-blocks", "full"
    int trials = 5;                  ///< of each arm
};

struct RoundtripRow {
    std::string lineage; ///< key
    std::string arm;
    int trial = 1;
    int number = 0; ///< of the try: 0 is the first
    /// "asked": the prompt was written now. "waiting": for the reply. "ready": to be gated. "ungated": its trial is not there. "failed": the
    /// reply cannot be used. "recovered", "short" (correct, but slower), or the status of a verdict that is not correct.
    std::string outcome;
    std::string reason{};
    std::optional<double> share{}; ///< of the last state's speed
    std::filesystem::path file{};  ///< what is to be read next: a prompt, a problem
};

/// Writes the prompts that are missing. A prompt that was answered is left as it is.
[[nodiscard]] Result<std::vector<RoundtripRow>> askRoundtrips(const RoundtripWork &work);

struct RoundtripJobs {
    std::vector<RoundtripRow> rows;
    std::vector<lineage::RecordJob> jobs; ///< one a reply, against the last state
};
/// Reads the replies, writes their candidates beside them, or why they cannot be used.
[[nodiscard]] Result<RoundtripJobs> roundtripJobs(const RoundtripWork &work);

/// Judges each reply once by the trials given: keeps candidate, trial and outcome in the lineage's folder (roundtrip/), and writes the
/// prompt of the next try where one is left.
[[nodiscard]] Result<std::vector<RoundtripRow>> judgeRoundtrips(const RoundtripWork &work,
                                                                const std::vector<gate::Trial> &trials);

} // namespace klineage::run
