// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <string>
#include <vector>

namespace klineage::lineage {

/// Something that keeps a lineage from being evidence.
struct VerifyFinding {
    std::string subject; ///< "K03", "R03a", "K02 → K03"; empty: the lineage as a whole
    std::string message; ///< a whole sentence
};

struct VerifyReport {
    int checks = 0; ///< how many were made
    std::vector<VerifyFinding> findings;

    [[nodiscard]] bool ok() const { return findings.empty(); }
};

/// Reads the candidate files again and checks: files exist and parse as candidates of the lineage's surface; each is the file its
/// trial measured; each state's trial is `correct`, timed with an interval, and compared with the state before it; transitions are
/// chained and have category, locus and summary; attempts' trials exist. Notices of the lineage are findings too.
[[nodiscard]] VerifyReport verifyLineage(const Lineage &lineage);

} // namespace klineage::lineage
