// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace klineage::interop {

/// A state or a rejected attempt of a lineage that was imported.
struct ImportedRow {
    std::string id; ///< "K02", "R01a"
    bool isState = true;
    std::string source; ///< where it lies in what was imported: "programs/a.json"
    std::string text;   ///< what the other system says of it, and what was chosen for it here
};

/// What became of one card, problem, file or folder.
struct ImportEntry {
    std::string
        source; ///< as seen from the folder that was imported; cards of one JSON file: "cards.json, card 3"
    std::string name;                ///< of the card or workload here; empty: it was skipped
    std::string reason;              ///< why it was skipped; of what was imported nothing
    bool isThere = false;            ///< skipped because it is here already
    std::vector<std::string> notes;  ///< what was not taken over, or chosen
    std::vector<ImportedRow> rows{}; ///< of a lineage, as they stand in it
};

} // namespace klineage::interop
