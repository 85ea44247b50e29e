// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/importentry.h"
#include "core/interop/problems/draft.h"

#include <filesystem>
#include <stop_token>

namespace klineage::interop {

struct ProblemOptions {
    DraftOptions draft;
    bool dryRun = false; ///< report, write nothing
};

/// Imports every problem below a folder, or of one file, into the folder `workloads`: definitions of FlashInfer Trace and SOL-ExecBench
/// with the workloads beside them (*.jsonl), and Python files of KernelBench. The reference of each becomes the workload's oracle,
/// reference.py, after it was run in a confined process: it has to give the shapes that the definition says, the same values twice, and
/// values that no output without work has; what does not is skipped. It computes in double where it can. Links are not followed. An
/// entry for all that was looked at; an Error only when nothing could be. Runs for as long as the references do.
[[nodiscard]] Result<std::vector<ImportEntry>> importProblems(const std::filesystem::path &from,
                                                              const std::filesystem::path &workloads,
                                                              const ProblemOptions &options,
                                                              const std::stop_token &stop = {});

} // namespace klineage::interop
