// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/cards/foreigncard.h"
#include "core/skills/store.h"

#include <filesystem>

namespace klineage::interop {

/// What became of one card, file or folder.
struct ImportEntry {
    std::string
        source; ///< as seen from the folder that was imported; cards of one JSON file: "cards.json, card 3"
    std::string card;               ///< its name here; empty: it was skipped
    std::string reason;             ///< why it was skipped; of a card nothing
    bool isThere = false;           ///< skipped because it had been imported before
    std::vector<std::string> notes; ///< what was not taken over
};

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
