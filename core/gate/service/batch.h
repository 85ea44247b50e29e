// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/supervisor/supervisor.h"

#include <filesystem>

namespace klineage::gate {

/// Gates every line of a file with one warm worker. A line in:
///   {"id": "gemm-K03", "workload": FOLDER, "candidate": FILE, "parent": FILE, "name": …, settings…}
/// id, workload and candidate are required; paths are relative to the current folder. A line out: {"id", "trial"} or {"id", "error"}.
/// Lines out are appended and synced one by one; ids that have a trial there are skipped, so a run that was killed is resumed by
/// running it again, and a line that the kill tore is dropped.
struct BatchOptions {
    std::filesystem::path in;
    std::filesystem::path out;
    double limitSeconds = 0; ///< no new trial is begun after this long; 0: no limit
    GateRequest defaults;    ///< settings for lines that do not say otherwise
    SupervisorOptions supervisor;
};

struct BatchSummary {
    int done = 0;    ///< trials written now
    int skipped = 0; ///< were in the out file
    int failed = 0;  ///< errors written now
    int left = 0;    ///< not begun, because of the limit or a stop request
};

/// Fails when a file cannot be read or written, or the in file has a bad line. say gets one line of text a trial.
[[nodiscard]] Result<BatchSummary> runBatch(const BatchOptions &options, const std::stop_token &stop,
                                            const std::function<void(const std::string &)> &say);

} // namespace klineage::gate
