// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <string>
#include <vector>

namespace klineage::lineage {

/// One candidate to gate so that a row of a lineage gets its trial. Paths are as the lineage's directory: absolute or relative.
struct RecordJob {
    std::string id; ///< "gemm/sm90/K03"
    std::filesystem::path workload;
    std::filesystem::path candidate;
    std::filesystem::path parent; ///< empty for K0
};

/// The states in order, each against its predecessor, then the attempts, each against the state it was made from.
[[nodiscard]] std::vector<RecordJob> recordJobs(const Lineage &lineage);

/// A job as a line of the input of `klineage-gate batch`.
[[nodiscard]] std::string writeRecordJob(const RecordJob &job);

} // namespace klineage::lineage
