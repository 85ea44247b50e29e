// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/drive/estimate.h"
#include "core/workspace/workspace.h"

namespace klineage::run {

/// A whole number that runs of one kind have among their options; what the command line and the window let a person choose.
struct CountOption {
    const char *name; ///< in Settings::options
    int absent;
    int least;
    int most;
};
inline constexpr CountOption rejectionsOption{"rejections", 5, 1, 1000}; ///< deoptimize
inline constexpr CountOption repairsOption{"repairs", 2, 0, 1000};       ///< deoptimize
inline constexpr CountOption withinOption{"within_percent", 3, 0, 100};  ///< deoptimize
inline constexpr CountOption attemptsOption{"attempts", 3, 1, 1000};     ///< admit
inline constexpr CountOption learnSteps{"", 0, 0, 1000};            ///< Settings::maxSteps of these kinds
inline constexpr CountOption materializeSteps{"", 0, 0, 1'000'000}; ///< of a materialization
inline constexpr double mostCapDollars = 1e6;

/// What somebody asks for who starts a run, by command or in the window.
struct StartRequest {
    Kind kind = Kind::Materialize;
    /// "sgemm/pocl/K00", "sgemm/pocl", "run:ID" (its best candidate) or a candidate file; admit: a card; lift: lineages with commas
    /// between them, empty for all.
    std::string subject;
    std::string policy = "klineage"; ///< materialize
    std::string workload;            ///< of a file
    std::string platform;            ///< of a file
    std::string provider;
    std::string model;
    double capDollars = 10;
    int maxSteps = 0;
    std::uint64_t seed = 0;
    std::string id; ///< empty: one is made
    std::map<std::string, std::string>
        options; ///< as in Settings; admit: "target" is a state, a lineage or a file
    std::map<std::string, std::string> author; ///< as in Settings; empty values count as none
    /// Put before the names of fields in messages: "--" where they are options of a command.
    std::string fieldPrefix;
};

/// The settings that are meant, looked up in the workspace. InvalidInput, NotFound or Conflict, in whole sentences, before anything is
/// written or spent.
[[nodiscard]] Result<Settings> startSettings(const Workspace &workspace, const StartRequest &request);

/// Whether replies cost the table's prices.
[[nodiscard]] bool isPaid(const Settings &settings);
/// What the run will probably cost; empty when replies cost nothing. Reads what its questions will hold from the workspace.
[[nodiscard]] Result<std::optional<Estimate>> startEstimate(const Workspace &workspace,
                                                            const Settings &settings);
/// What else to know before such a run begins, a sentence each: where it writes, whether a target can admit, who may answer,
/// how many cards are shown.
[[nodiscard]] std::vector<std::string> startNotes(const Workspace &workspace, const Settings &settings);

/// "sgemm/pocl/K03", or the last state of "sgemm/pocl".
struct FoundState {
    const lineage::Lineage *lineage = nullptr;
    const lineage::State *state = nullptr;
};
[[nodiscard]] FoundState findState(const Workspace &workspace, const std::string &name);

} // namespace klineage::run
