// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/perform/author.h"
#include "core/workspace/workspace.h"

#include <string>

namespace klineage::ui {

/// What a person says to start a materialization.
struct RunForm {
    std::string root; ///< "sgemm/pocl/K00"
    std::string policy = "klineage";
    std::string provider = "manual";
    std::string model;
    std::string command;    ///< exec
    std::string baseUrl;    ///< anthropic, openai: another server
    std::string transcript; ///< replay
    double capDollars = 10;
    int maxQuestions = 0; ///< 0: until the budget or the policy ends it
    int seed = 0;
    bool heldOut = false; ///< leave out cards that rest on the workload's own lineages
};

/// The settings of the run with a name of its own; InvalidInput or NotFound with a whole sentence when something is missing.
[[nodiscard]] Result<run::Settings> runSettings(const Workspace &workspace, const RunForm &form);
/// What it will probably cost; empty when replies cost nothing.
[[nodiscard]] Result<std::optional<run::Estimate>> runEstimate(const Workspace &workspace,
                                                               const run::Settings &settings);

} // namespace klineage::ui
