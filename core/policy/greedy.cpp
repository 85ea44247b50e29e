// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/greedy.h"

#include "core/base/numbertext.h"
#include "core/talk/prompt.h"
#include "core/talk/trialtext.h"

#include <algorithm>

namespace klineage::policy {

namespace {

std::string noteOf(const Outcome &outcome)
{
    if (outcome.kind != Outcome::Kind::Gated)
        return outcome.problem;
    const gate::Verdict &verdict = outcome.tried.trial.verdict;
    if (verdict.status != gate::VerdictStatus::Correct)
        return std::string(gate::toString(verdict.status)) + ": " + verdict.message;
    return outcome.improved ? "a new best, " + fixedText(outcome.tried.speedup, 3) + "× the reference"
                            : "correct, but no faster";
}

} // namespace

Greedy::Greedy(Problem problem, Limits limits)
    : m_problem(std::move(problem))
    , m_limits(limits)
{}

Status Greedy::begin(const Tried &root)
{
    Result<Chat> chat = Chat::begin(m_problem, root, m_limits.chatBytes,
                                    m_limits.promptBytes > 0 ? Chat::Prefix::Lean : Chat::Prefix::Whole);
    if (!chat)
        return tl::unexpected(chat.error());
    m_chat = std::move(*chat);
    m_root = m_best = root;
    return {};
}

Result<Move> Greedy::next()
{
    if (m_isDone)
        return Move(End{"The author says that nothing is left to do"
                        + (m_doneReason.empty() ? std::string(".") : ": " + m_doneReason)});
    if (m_withoutGain >= m_limits.patience)
        return Move(End{"No new best in " + std::to_string(m_withoutGain) + " suggestions in a row."});
    m_chat->restart();
    const bool lean = m_limits.promptBytes > 0;
    Result<std::string> text = run::prompt(
        "materialize-suggest",
        {{"base", m_best.text == m_root.text && !lean ? std::string("the root file\n")
                                                      : "this file:\n\n" + run::fenced(m_best.text, "")},
         {"verdict", trialText(m_best.trial)},
         {"notes", notesText(m_notes)},
         {"last", m_last.empty() ? std::string() : "The last suggestion:\n" + m_last}});
    if (!text)
        return tl::unexpected(text.error());
    Ask ask;
    ask.action = "suggest";
    ask.title = "One change to the best";
    ask.baseText = m_best.text;
    if (lean) {
        const std::size_t used = m_chat->prefixBytes() + text->size();
        *text += m_cardTurns.next(m_problem.cards,
                                  m_limits.promptBytes - std::min(used, m_limits.promptBytes), ask.cards);
    } else {
        for (const LoadedCard &card : m_problem.cards)
            ask.cards.push_back(card.name);
    }
    ask.request = m_chat->ask(*text);
    return Move(std::move(ask));
}

Result<std::string> Greedy::readPlan(const std::string &)
{
    return fail(ErrorCode::InvalidInput, "No plan was asked for.");
}

void Greedy::observe(const Outcome &outcome)
{
    m_notes.push_back({"suggestion " + std::to_string(m_notes.size() + 1), noteOf(outcome)});
    m_last.clear();
    m_withoutGain = outcome.improved ? 0 : m_withoutGain + 1;
    if (outcome.kind == Outcome::Kind::Done) {
        m_isDone = true;
        m_doneReason = outcome.problem;
    } else if (outcome.kind == Outcome::Kind::Gated) {
        const bool asChanges = m_limits.promptBytes > 0 && !outcome.changes.empty();
        const bool better =
            followsPairs(m_problem.options) ? outcome.improved : outcome.tried.speedup > m_best.speedup;
        if (better)
            m_best = outcome.tried;
        else
            m_last = (asChanges ? "changes of the file above:\n\n" + run::fenced(outcome.changes, "diff")
                                : run::fenced(outcome.tried.text, ""))
                     + trialText(outcome.tried.trial);
    }
}

} // namespace klineage::policy
