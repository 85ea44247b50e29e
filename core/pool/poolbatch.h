// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gatepool.h"
#include "core/trial/batchfile.h"

#include <functional>

namespace klineage::gate {

/// The trials of a batch over the gates of a pool. Lines out are appended and synced one by one, as trials end; ids that have a trial there
/// are skipped, so a batch that was killed is resumed by running it again.
struct PoolBatch {
    std::filesystem::path in;
    std::filesystem::path out;
    GateRequest defaults;
    int jobs = 1; ///< trials that are asked for at a time
};

struct PoolBatchSummary {
    int done = 0;
    int skipped = 0;    ///< were in the out file
    int failed = 0;     ///< errors
    int left = 0;       ///< not begun, because of a stop request
    double seconds = 0; ///< from the first trial's asking to the last one's end
};

/// say gets one line of text a trial, by one thread at a time.
[[nodiscard]] Result<PoolBatchSummary> runPoolBatch(const PoolBatch &batch, GatePool &pool,
                                                    const std::stop_token &stop,
                                                    const std::function<void(const std::string &)> &say);

} // namespace klineage::gate
