// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/message.h"
#include "core/policy/policy.h"

#include <string>

namespace klineage::policy {

/// The chat of a run: a system text that never changes (rules, workload, root, cards: the cached prefix), then turns. When the turns
/// outgrow the limit they are left out, and a summary takes their place: the prefix stays the same.
class Chat
{
public:
    enum class Prefix {
        Whole, ///< with the root's file, and the cards as showsIndex() says
        Lean, ///< with an index of the cards; files and texts of cards come with the questions, which are about the best
        Search, ///< as Lean, for questions about any program
    };
    /// Writes the system text.
    [[nodiscard]] static Result<Chat> begin(const Problem &problem, const Tried &root,
                                            std::size_t mostTurnBytes, Prefix prefix = Prefix::Whole);

    /// Adds the user's turn and answers with the whole request, every turn before it marked for the cache.
    [[nodiscard]] llm::Request ask(const std::string &text);
    /// The author's turn. An empty reply is written as "(no answer)": servers take no empty turns.
    void answer(const std::string &reply);
    /// Whether the next ask() would be better begun anew.
    [[nodiscard]] bool isLong() const { return m_turnBytes > m_mostTurnBytes || m_turns.size() > 200; }
    void restart();
    [[nodiscard]] std::size_t prefixBytes() const { return m_system.size(); }

private:
    std::string m_system;
    std::vector<llm::Message> m_turns;
    std::size_t m_turnBytes = 0;
    std::size_t m_mostTurnBytes = 0;
};

} // namespace klineage::policy
