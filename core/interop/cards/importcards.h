// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/cards/foreigncard.h"
#include "core/interop/importentry.h"
#include "core/skills/store.h"

#include <filesystem>

namespace klineage::interop {

struct ImportOptions {
    std::string origin; ///< empty: the folder's name
    std::string
        license; ///< of cards that say none; empty: the first line of a LICENSE in the folder, else "unknown"
    bool dryRun = false; ///< report, write nothing
};

/// Imports every card below a folder, or of one file: SKILL.md of both KLineage generations and of the Agent Skills standard, and rich
/// JSON. Links are not followed. Beside each card lies what it was read from, original.md or original.json. An entry for all
/// that was looked at; an Error only when nothing could be.
[[nodiscard]] Result<std::vector<ImportEntry>> importCards(const std::filesystem::path &from,
                                                           const skills::CardStore &store,
                                                           const ImportOptions &options);

} // namespace klineage::interop
