// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/cardturns.h"
#include "core/policy/lineagepolicy.h"

namespace klineage::policy {

/// One suggestion at a time, always from the best, without repair. Each question is a chat of its own, so what a step costs does not
/// grow with the steps before it; the last failure and a line for everything tried stand in it. With a limit of bytes a question has the
/// best file alone, the last failure as changes of it, and as many texts of cards as there is room for, in turn.
class Greedy : public Policy
{
public:
    Greedy(Problem problem, Limits limits);

    [[nodiscard]] Status begin(const Tried &root) override;
    [[nodiscard]] Result<Move> next() override;
    [[nodiscard]] Result<std::string> readPlan(const std::string &block) override;
    void observe(const Outcome &outcome) override;

private:
    Problem m_problem;
    Limits m_limits;
    std::optional<Chat> m_chat;
    Tried m_root;
    Tried m_best;
    std::vector<Note> m_notes;
    std::string m_last; ///< the last candidate that was no new best, and its verdict
    CardTurns m_cardTurns;
    int m_withoutGain = 0;
    bool m_isDone = false;
    std::string m_doneReason;
};

} // namespace klineage::policy
