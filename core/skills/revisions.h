// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <string>
#include <vector>

namespace klineage::skills {

/// The text that a card had, and the event that made it.
struct Revision {
    int number = 1;
    std::string time; ///< of the event; empty of the first known one
    std::string author;
    std::string reason;
    std::string text; ///< card.toml as writeCard() writes it; as it was, where it cannot be read
};

/// Every revision whose text the log still has, oldest first; the last is the card as it stands. Reads no files.
[[nodiscard]] std::vector<Revision> revisionsOf(const CardRecord &record);

} // namespace klineage::skills
