// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/lineagepolicy.h"

#include "core/base/numbertext.h"
#include "core/talk/prompt.h"
#include "core/talk/trialtext.h"

#include <algorithm>

namespace klineage::policy {

namespace {

constexpr int mostUnusable = 3; ///< replies in a row that cannot be used, before a question is given up
constexpr std::size_t mostNotes = 60;
constexpr int mostReadings = 2;               ///< times that the plan may ask for texts first
constexpr std::size_t mostTextBytes = 20'000; ///< of cards in one question
constexpr int repairsOfBundles = 1;           ///< of more than one card; then it is split

std::string resultOf(const Outcome &outcome)
{
    const gate::Trial &trial = outcome.tried.trial;
    if (trial.verdict.status != gate::VerdictStatus::Correct)
        return std::string(gate::toString(trial.verdict.status)) + ": " + trial.verdict.message;
    std::string text = "correct, " + latencyText(trial.latencyNs.value);
    if (outcome.tried.speedup > 0)
        text += ", " + fixedText(outcome.tried.speedup, 3) + "× the reference";
    return text + (outcome.improved ? ", a new best" : ", no new best");
}

std::string joined(const std::vector<std::string> &names)
{
    std::string text;
    for (const std::string &name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

bool isLoss(const gate::Trial &trial)
{
    const gate::Comparison *parent = trial.comparison("parent");
    return parent && parent->change == gate::Change::Loss;
}

} // namespace

std::string notesText(const std::vector<Note> &notes)
{
    if (notes.empty())
        return "Nothing yet.\n";
    std::string text;
    const std::size_t first = notes.size() > mostNotes ? notes.size() - mostNotes : 0;
    if (first > 0)
        text += "- … " + std::to_string(first) + " earlier ones are left out\n";
    for (std::size_t i = first; i < notes.size(); ++i)
        text += "- " + notes[i].what + ": " + notes[i].result + '\n';
    return text;
}

LineagePolicy::LineagePolicy(Problem problem, Limits limits)
    : m_problem(std::move(problem))
    , m_limits(limits)
    , m_bundles(movesOf(m_problem.options) != Moves::Single)
    , m_readsFirst(movesOf(m_problem.options) != Moves::OwnFirst)
{
    if (m_bundles)
        m_phase = Phase::Own;
    else if (m_problem.cards.empty())
        m_phase = Phase::Free;
}

Status LineagePolicy::begin(const Tried &root)
{
    Problem shown = m_problem;
    if (m_bundles) // they come once the author has shown what it does without
        shown.cards.clear();
    Result<Chat> chat = Chat::begin(shown, root, m_limits.chatBytes);
    if (!chat)
        return tl::unexpected(chat.error());
    m_chat = std::move(*chat);
    m_root = m_current = m_best = root;
    return {};
}

Result<Move> LineagePolicy::next()
{
    if (m_isDone)
        return Move(End{"The author says that nothing is left to do"
                        + (m_doneReason.empty() ? std::string(".") : ": " + m_doneReason)});
    if (m_unusable > 0)
        return again();
    if (m_failed)
        return repair();
    if (m_phase == Phase::Own)
        return own();
    if (m_phase == Phase::Load)
        return load();
    if (m_phase == Phase::Complete && !m_missing.empty())
        return m_bundles ? completeBundle() : complete();
    m_phase = Phase::Free;
    return freeMove();
}

Result<llm::Request> LineagePolicy::say(const std::string &name, std::map<std::string, std::string> values)
{
    Result<std::string> text = run::prompt("materialize-" + name, values);
    if (!text)
        return tl::unexpected(text.error());
    if (m_chat->isLong()) {
        m_chat->restart();
        m_inView.clear();
        m_shown.clear();
        Result<std::string> summary =
            run::prompt("materialize-summary",
                        {{"notes", notesText(m_notes)}, {"best_file", run::fenced(m_best.text, "")}});
        if (!summary)
            return tl::unexpected(summary.error());
        *text = *summary + '\n' + *text;
    }
    if (!m_said.empty())
        *text = m_said + '\n' + *text;
    m_said.clear();
    return m_chat->ask(*text);
}

std::string LineagePolicy::show(const Tried &state) const
{
    if (state.text == m_root.text)
        return "the root file\n";
    if (state.text == m_inView && !m_chat->isLong())
        return m_hasPlanned ? "your last candidate\n" : "the file of your last reply\n";
    return "this file:\n\n" + run::fenced(state.text, "");
}

const LoadedCard *LineagePolicy::card(const std::string &name) const
{
    const auto it = std::find_if(m_problem.cards.begin(), m_problem.cards.end(),
                                 [&](const LoadedCard &card) { return card.name == name; });
    return it == m_problem.cards.end() ? nullptr : &*it;
}

std::string LineagePolicy::textsOf(const std::vector<std::string> &names)
{
    std::string text;
    if (!showsIndex(m_problem.options) && !m_bundles) // they stand in the prefix
        return text;
    for (const std::string &name : names) {
        const LoadedCard *wanted = card(name);
        if (!wanted || m_shown.count(name) > 0)
            continue;
        if (!text.empty() && text.size() + wanted->text.size() > mostTextBytes) {
            text += "The text of " + name + " is left out here.\n\n";
            continue;
        }
        text += wanted->text + '\n';
        m_shown.insert(name);
    }
    return text;
}

Result<Move> LineagePolicy::own()
{
    Ask ask;
    ask.action = "own";
    ask.title = "The author's own strongest";
    ask.baseText = m_root.text;
    Result<llm::Request> request = say("own", {{"base", show(m_root)}});
    if (!request)
        return tl::unexpected(request.error());
    ask.request = std::move(*request);
    m_last = ask;
    return Move(std::move(ask));
}

Result<Move> LineagePolicy::load()
{
    Ask ask;
    ask.action = "load";
    ask.title = m_problem.cards.size() == 1 ? "Load 1 card"
                                            : "Load " + std::to_string(m_problem.cards.size()) + " cards";
    ask.baseText = m_bundles ? m_best.text : m_root.text;
    ask.wantsPlan = true;
    std::string index;
    for (const LoadedCard &card : m_problem.cards) {
        ask.cards.push_back(card.name);
        index += card.index;
    }
    index += presentText(m_problem);
    const bool reads = !m_toRead.empty();
    Result<llm::Request> request = tl::unexpected(Error{});
    if (reads)
        request = say("read", {{"cards", textsOf(m_toRead)}});
    else if (m_bundles)
        request = say(m_readsFirst ? "choose-or-read" : "choose", {{"cards", index}, {"base", show(m_best)}});
    else
        request = say(showsIndex(m_problem.options) ? "load-index" : "load", {});
    m_toRead.clear();
    if (!request)
        return tl::unexpected(request.error());
    ask.request = std::move(*request);
    m_last = ask;
    return Move(std::move(ask));
}

Result<Move> LineagePolicy::complete()
{
    const LoadedCard *chosen = card(m_missing.front().front());
    Ask ask;
    ask.action = "complete";
    ask.title = "Apply " + chosen->name;
    ask.baseText = m_current.text;
    ask.cards = {chosen->name};
    if (m_chat->isLong())
        m_shown.clear(); // the chat is about to begin anew
    m_said += textsOf(ask.cards);
    Result<llm::Request> request =
        say("complete", {{"card", chosen->name}, {"intent", chosen->intent}, {"base", show(m_current)}});
    if (!request)
        return tl::unexpected(request.error());
    ask.request = std::move(*request);
    m_last = ask;
    return Move(std::move(ask));
}

Result<Move> LineagePolicy::completeBundle()
{
    Ask ask;
    ask.action = "complete";
    ask.baseText = m_best.text;
    ask.cards = m_missing.front();
    ask.title = ask.cards.size() == 1 ? "Apply " + ask.cards.front()
                                      : "Apply " + std::to_string(ask.cards.size()) + " cards in one";
    if (m_chat->isLong())
        m_shown.clear();
    std::string names;
    for (const std::string &name : ask.cards)
        names += (names.empty() ? "`" : ", `") + name + '`';
    const std::string texts = textsOf(ask.cards);
    Result<llm::Request> request =
        say("bundle", {{"names", names},
                       {"cards", texts.empty() ? "You have seen their texts above.\n" : texts},
                       {"base", show(m_best)}});
    if (!request)
        return tl::unexpected(request.error());
    ask.request = std::move(*request);
    m_last = ask;
    return Move(std::move(ask));
}

Result<Move> LineagePolicy::repair()
{
    Ask ask = m_last;
    ask.action = "repair";
    ask.title = "Repair: " + std::string(gate::toString(m_failed->trial.verdict.status));
    Result<llm::Request> request = say("repair", {{"file", show(*m_failed)},
                                                  {"verdict", trialText(m_failed->trial)},
                                                  {"left", std::to_string(repairsOfThis() - m_repairs)}});
    if (!request)
        return tl::unexpected(request.error());
    ask.request = std::move(*request);
    m_last = ask;
    return Move(std::move(ask));
}

/// The same question once more, after a reply that could not be used.
Result<Move> LineagePolicy::again()
{
    Ask ask = m_last;
    Result<llm::Request> request = say("again", {});
    if (!request)
        return tl::unexpected(request.error());
    ask.request = std::move(*request);
    m_last = ask;
    return Move(std::move(ask));
}

Result<Move> LineagePolicy::freeMove()
{
    if (m_withoutGain >= m_limits.patience)
        return Move(End{"No new best in " + std::to_string(m_withoutGain) + " free moves in a row."});
    const bool withCards = !m_problem.cards.empty();
    Ask ask;
    ask.action = withCards ? "replan" : "generate";
    ask.title = withCards ? "Replan from the best" : "Improve the best";
    ask.baseText = m_best.text;
    Result<llm::Request> request =
        say(m_bundles ? "move" : ask.action,
            {{"notes", notesText(m_notes)}, {"base", show(m_best)}, {"verdict", trialText(m_best.trial)}});
    if (!request)
        return tl::unexpected(request.error());
    ask.request = std::move(*request);
    m_last = ask;
    return Move(std::move(ask));
}

Result<std::string> LineagePolicy::readPlan(const std::string &block)
{
    std::vector<std::string> known;
    for (const LoadedCard &card : m_problem.cards)
        known.push_back(card.name);
    const Result<std::vector<PlanEntry>> plan = parsePlan(block, known);
    if (!plan)
        return tl::unexpected(plan.error());
    for (const PlanEntry &entry : *plan) {
        if (entry.state == PlanEntry::State::Read && showsIndex(m_problem.options) && m_readsFirst)
            m_toRead.push_back(entry.card);
    }
    if (!m_toRead.empty() && ++m_readings <= mostReadings)
        return "To be read first: " + std::to_string(m_toRead.size()) + " cards.";
    m_toRead.clear();
    m_missing.clear();
    std::string text;
    std::vector<std::string> missing;
    for (const PlanEntry &entry : *plan) {
        // A bundle comes with its texts, and what is not sound after all is left out of it: reading by itself would cost a question.
        const bool isTaken = entry.state == PlanEntry::State::Missing
                             || (!m_readsFirst && entry.state == PlanEntry::State::Read);
        if (isTaken) {
            missing.push_back(entry.card);
            text += (text.empty() ? "" : ", then ") + entry.card;
        } else if (entry.state == PlanEntry::State::Skip) {
            m_notes.push_back(
                {entry.card,
                 "left out by the plan" + (entry.reason.empty() ? std::string() : ": " + entry.reason)});
        }
    }
    bundle(missing);
    return text.empty() ? "No intent is missing." : "Missing: " + text + '.';
}

void LineagePolicy::bundle(const std::vector<std::string> &cards)
{
    std::size_t bytes = 0;
    for (const std::string &name : cards) {
        const std::size_t more = card(name)->text.size();
        if (!m_bundles || m_missing.empty() || bytes + more > mostTextBytes) {
            m_missing.emplace_back();
            bytes = 0;
        }
        m_missing.back().push_back(name);
        bytes += more;
    }
}

void LineagePolicy::observe(const Outcome &outcome)
{
    m_chat->answer(outcome.reply);
    m_hasPlanned = !m_readsFirst
                   && outcome.kind == Outcome::Kind::Planned; // that leaves the candidate before it in view
    if (!m_hasPlanned)
        m_inView = outcome.kind == Outcome::Kind::Gated ? outcome.tried.text : std::string();
    switch (outcome.kind) {
    case Outcome::Kind::Planned:
        m_unusable = 0;
        if (m_toRead.empty())
            m_phase = Phase::Complete;
        return;
    case Outcome::Kind::Done:
        m_unusable = 0;
        if (m_failed) {
            endIntent("given up, the author says: " + outcome.problem);
        } else if (m_phase == Phase::Free) {
            m_isDone = true;
            m_doneReason = outcome.problem;
        } else if (m_phase == Phase::Load) {
            m_phase = Phase::Free;
        } else {
            endIntent("not applied, the author says: " + outcome.problem);
        }
        return;
    case Outcome::Kind::Gated:
        m_unusable = 0;
        observeGated(outcome);
        return;
    case Outcome::Kind::Wrapper:
    case Outcome::Kind::NoCandidate:
        observeUnusable(outcome);
        return;
    }
}

void LineagePolicy::observeGated(const Outcome &outcome)
{
    const Tried &tried = outcome.tried;

    const std::string what = m_last.cards.size() == 1 ? m_last.cards.front() : "free move";
    if (tried.trial.verdict.status != gate::VerdictStatus::Correct) {
        m_repairs = m_last.action == "repair" ? m_repairs + 1 : 0;
        if (m_repairs < repairsOfThis()) {
            m_failed = tried;
            return;
        }
        m_said = "This candidate is given up after " + std::to_string(m_repairs) + " repairs. Its verdict:\n"
                 + trialText(tried.trial);
        if (m_bundles && m_phase == Phase::Complete && isOneOfMany())
            split(resultOf(outcome));
        else
            endIntent("given up, " + resultOf(outcome));
        return;
    }
    m_failed.reset();
    m_repairs = 0;
    m_said = trialText(tried.trial);
    if (m_phase == Phase::Complete) {
        if (isLoss(tried.trial))
            m_said += "It is slower than the state it was made from, so it is not kept.\n";
        else
            m_current = tried;
    }
    take(outcome);
    const std::string result = resultOf(outcome);
    if (m_phase != Phase::Free) {
        endIntent(result);
    } else {
        m_notes.push_back({what, result});
        countFreeMove(outcome.improved);
    }
}

void LineagePolicy::take(const Outcome &outcome)
{
    const bool better =
        followsPairs(m_problem.options) ? outcome.improved : outcome.tried.speedup > m_best.speedup;
    if (better)
        m_best = outcome.tried;
}

void LineagePolicy::observeUnusable(const Outcome &outcome)
{
    m_said = outcome.problem + '\n';
    if (++m_unusable < mostUnusable)
        return;
    m_unusable = 0;
    m_failed.reset();
    m_repairs = 0;
    if (m_phase == Phase::Load) { // without a plan: all of them, as retrieval put them
        m_phase = Phase::Complete;
        std::vector<std::string> all;
        for (const LoadedCard &card : m_problem.cards)
            all.push_back(card.name);
        bundle(all);
        return;
    }
    endIntent("given up, no usable reply: " + outcome.problem);
}

/// Which of the cards it was that failed: the halves are tried by themselves.
void LineagePolicy::split(const std::string &result)
{
    m_failed.reset();
    m_repairs = 0;
    const Bundle all = std::move(m_missing.front());
    m_missing.pop_front();
    m_notes.push_back({joined(all), "given up together, " + result});
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() + 1) / 2);
    m_missing.emplace_front(middle, all.end());
    m_missing.emplace_front(all.begin(), middle);
}

int LineagePolicy::repairsOfThis() const
{
    const bool splits = m_bundles && m_phase == Phase::Complete && isOneOfMany();
    return splits ? std::min(m_limits.repairs, repairsOfBundles) : m_limits.repairs;
}

/// The intent in hand, or the free move, is over.
void LineagePolicy::endIntent(const std::string &result)
{
    m_failed.reset();
    m_repairs = 0;
    if (m_phase == Phase::Own) {
        m_notes.push_back({"your own strongest", result});
        m_phase = m_problem.cards.empty() ? Phase::Free : Phase::Load;
    } else if (m_phase == Phase::Complete && !m_missing.empty()) {
        m_notes.push_back({joined(m_missing.front()), result});
        m_missing.pop_front();
    } else {
        m_notes.push_back({"free move", result});
        countFreeMove(false);
    }
}

void LineagePolicy::countFreeMove(bool improved)
{
    m_withoutGain = improved ? 0 : m_withoutGain + 1;
}

} // namespace klineage::policy
