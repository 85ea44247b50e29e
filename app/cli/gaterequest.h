// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

#include "core/trial/request.h"
#include "core/trial/trial.h"

namespace klineage::cli {

/// What a verb gates: a file for a workload, compared with a state of a lineage. As the options of `gate run` say.
struct GateChoice {
    std::string file;
    std::string workload;
    std::string parent;
    std::string lineage;
    double profileSeconds = 10;
    int rounds = 30;
    double timeoutSeconds = 120;
    int seeds = 3;
    bool withoutReference = false;
};

/// The exit status, after saying why, when something about it is wrong.
[[nodiscard]] tl::expected<gate::GateRequest, int> requestFor(const Session &session,
                                                              const Workspace &workspace,
                                                              const GateChoice &choice);

/// Adds the trial to the lineage of its workload and platform and returns the lineage's key.
[[nodiscard]] Result<std::string> recordInLineage(const Workspace &workspace, const gate::Trial &trial,
                                                  const std::string &candidateText);

/// What a trial found, for people.
void printTrial(const gate::Trial &trial);
[[nodiscard]] int exitStatusOf(gate::VerdictStatus status);
/// On a terminal, on one line of stderr.
void showProgress(const gate::GateProgress &progress);

} // namespace klineage::cli
