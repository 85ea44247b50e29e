// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/importentry.h"
#include "core/workload/workload.h"

#include <stop_token>

namespace klineage::interop {

struct ArchiveOptions {
    std::string name;     ///< of the lineage; empty: what the system is called
    std::string platform; ///< empty: that of the workload's lineages on such a device, where they agree
    std::optional<kernel::Surface>
        surface;                        ///< of programs that do not say it themselves; others are left out
    std::vector<std::string> platforms; ///< of the workload's lineages
    std::size_t most = 500;             ///< programs; the path to the best one is taken in any case
    bool dryRun = false;                ///< report, write nothing
};

inline constexpr std::size_t mostArchivedPrograms = 5'000; ///< that can be asked for
inline constexpr std::size_t mostImportedStates = 300;

/// Imports what an evolutionary search of another system left behind (readArchive) as a lineage of the workload. Its states are the path from
/// the root to the best program, every other program is an attempt of its nearest ancestor that is a state. What that system says of a
/// program stands in titles and reasons with the system's name, and is no trial. The lineage is written whole or not at all. One entry for the
/// lineage, whose name is its key, whose notes say all that was chosen, proposed or left out and whose rows are its states and attempts,
/// and one for each file that was passed over. Errors: NotFound; Conflict, there is such a lineage; InvalidInput, of the options;
/// Unavailable; Io; Cancelled.
[[nodiscard]] Result<std::vector<ImportEntry>> importArchive(const std::filesystem::path &from,
                                                             const workload::Workload &workload,
                                                             const ArchiveOptions &options,
                                                             const std::stop_token &stop = {});

} // namespace klineage::interop
