// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/cardturns.h"

namespace klineage::policy {

std::string CardTurns::next(const std::vector<LoadedCard> &cards, std::size_t bytes,
                            std::vector<std::string> &names)
{
    std::string text;
    std::size_t next = m_next;
    for (std::size_t i = 0; i < cards.size(); ++i) {
        const LoadedCard &card = cards[(m_next + i) % cards.size()];
        const std::string more = '\n' + card.text;
        if (text.size() + more.size() > bytes)
            continue;
        text += more;
        names.push_back(card.name);
        next = (m_next + i) % cards.size() + 1;
    }
    m_next = next;
    return text;
}

} // namespace klineage::policy
