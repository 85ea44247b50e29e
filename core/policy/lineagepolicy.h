// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/chat.h"
#include "core/policy/plan.h"
#include "core/policy/policy.h"

#include <deque>
#include <optional>
#include <set>

namespace klineage::policy {

/// Limits of a search, from the problem's options.
struct Limits {
    int patience = 5;                ///< free moves in a row without a new best, then the policy is done
    int repairs = 3;                 ///< of one failed candidate
    std::size_t chatBytes = 240'000; ///< turns, before they are summarised
    std::size_t promptBytes =
        0; ///< of a question in all (greedy); 0: whatever it comes to, as of earlier versions
};
[[nodiscard]] Result<Limits> readLimits(const std::map<std::string, std::string> &options);

/// A line for people and prompts about something that was tried.
struct Note {
    std::string what;
    std::string result;
};
[[nodiscard]] std::string notesText(const std::vector<Note> &notes);

/// `klineage` and, without cards, `generated-only`. In runs of now (Moves::OwnFirst):
///
/// 1. own: the author's own strongest candidate, in one go. An author that writes well needs no card for what it does anyway.
/// 2. load: from an index of the cards it chooses those that its best lacks and that would pay.
/// 3. complete: these cards in one candidate, as many as fit into a question with their texts. What fails is repaired once, then the
///    bundle is split in two halves; a card that fails alone is given up after as many repairs as are set.
/// 4. replan (without cards: generate): free moves from the best, as below.
///
/// In runs of earlier versions:
///
/// 1. load: the cards, or an index of them whose texts can be asked for, stand in the prefix; the author says of each whether the code lacks its intent, and in which order they go.
///    What this costs is the plateau of the trajectory.
/// 2. complete: one missing intent a step, on the current state. A correct candidate that is no loss becomes the current state, a gain
///    or not: some intents only make room for the next. A loss is told and left.
/// 3. repair: a candidate that failed goes back with its verdict, a few times; then its intent is given up.
/// 4. replan: when no intent is missing any more, free moves from the best, with all that was tried in view, until several in a row
///    bring nothing or the author says DONE. Without cards these are all there is, and are called generate.
class LineagePolicy : public Policy
{
public:
    LineagePolicy(Problem problem, Limits limits);

    [[nodiscard]] Status begin(const Tried &root) override;
    [[nodiscard]] Result<Move> next() override;
    [[nodiscard]] Result<std::string> readPlan(const std::string &block) override;
    void observe(const Outcome &outcome) override;

private:
    enum class Phase { Own, Load, Complete, Free };
    using Bundle = std::vector<std::string>; ///< cards that go into one candidate

    [[nodiscard]] Result<Move> own();
    [[nodiscard]] Result<Move> load();
    [[nodiscard]] Result<Move> complete();
    [[nodiscard]] Result<Move> completeBundle();
    [[nodiscard]] Result<Move> repair();
    [[nodiscard]] Result<Move> again();
    [[nodiscard]] Result<Move> freeMove();
    /// The template's text after what is to be said about the last reply, in the chat.
    [[nodiscard]] Result<llm::Request> say(const std::string &name,
                                           std::map<std::string, std::string> values);
    /// How a prompt refers to a state: by name when the author has it in front of it, with its text otherwise.
    [[nodiscard]] std::string show(const Tried &state) const;
    [[nodiscard]] const LoadedCard *card(const std::string &name) const;
    /// The texts of those cards that the author has not been shown since the chat began, up to a limit; marks them as shown.
    [[nodiscard]] std::string textsOf(const std::vector<std::string> &names);

    /// The cards in hand as bundles whose texts fit into a question each; one by one in runs of earlier versions.
    void bundle(const std::vector<std::string> &cards);
    [[nodiscard]] bool isOneOfMany() const { return !m_missing.empty() && m_missing.front().size() > 1; }
    void observeGated(const Outcome &outcome);
    void observeUnusable(const Outcome &outcome);
    void take(const Outcome &outcome);
    void endIntent(const std::string &result);
    void split(const std::string &result);
    [[nodiscard]] int repairsOfThis() const;
    void countFreeMove(bool improved);

    Problem m_problem;
    Limits m_limits;
    std::optional<Chat> m_chat;
    Tried m_root;
    bool m_bundles = false;
    bool m_readsFirst = true;
    Tried m_current; ///< the state that intents are completed on
    Tried m_best;
    std::optional<Tried> m_failed; ///< to be repaired
    Ask m_last;                    ///< the question in the air
    std::string m_inView;          ///< the candidate in the author's last usable reply
    bool m_hasPlanned = false;     ///< a plan came after that reply
    std::string m_said;            ///< about the last reply, to begin the next question with
    Phase m_phase = Phase::Load;
    std::deque<Bundle> m_missing;      ///< in order
    std::vector<std::string> m_toRead; ///< cards whose text the plan asks for
    std::set<std::string> m_shown;     ///< cards whose text is in the chat, when it begins with an index
    int m_readings = 0;
    std::vector<Note> m_notes;
    int m_repairs = 0;     ///< of m_failed
    int m_unusable = 0;    ///< replies in a row
    int m_withoutGain = 0; ///< free moves in a row
    bool m_isDone = false; ///< the author said so
    std::string m_doneReason;
};

} // namespace klineage::policy
