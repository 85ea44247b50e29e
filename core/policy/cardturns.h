// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy.h"

#include <cstddef>
#include <string>
#include <vector>

namespace klineage::policy {

/// Shows the texts of a run's cards in turn, each question those that come next and fit.
class CardTurns
{
public:
    /// Texts that have room in a number of bytes, from the card on that comes next; their names are put into `names`.
    [[nodiscard]] std::string next(const std::vector<LoadedCard> &cards, std::size_t bytes,
                                   std::vector<std::string> &names);

private:
    std::size_t m_next = 0;
};

} // namespace klineage::policy
