// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace klineage::interop {

/// What became of one card, problem, file or folder.
struct ImportEntry {
    std::string
        source; ///< as seen from the folder that was imported; cards of one JSON file: "cards.json, card 3"
    std::string name;               ///< of the card or workload here; empty: it was skipped
    std::string reason;             ///< why it was skipped; of what was imported nothing
    bool isThere = false;           ///< skipped because it is here already
    std::vector<std::string> notes; ///< what was not taken over, or chosen
};

} // namespace klineage::interop
