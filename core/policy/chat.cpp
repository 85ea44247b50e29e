// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/chat.h"

#include "core/talk/prompt.h"
#include "core/talk/trialtext.h"

namespace klineage::policy {

namespace {

std::string cardsText(const Problem &problem, bool index)
{
    std::string text;
    for (const LoadedCard &card : problem.cards)
        text += index ? card.index : '\n' + card.text;
    const std::string present = presentText(problem);
    return present.empty() ? text : text + '\n' + present;
}

} // namespace

Result<Chat> Chat::begin(const Problem &problem, const Tried &root, std::size_t mostTurnBytes, Prefix prefix)
{
    const bool lean = prefix != Prefix::Whole;
    // Of earlier versions' runs it said less of tensor maps, and their authors made them on the device instead.
    const Result<std::string> format = run::prompt(
        lean || movesOf(problem.options) == Moves::OwnFirst ? "materialize-format" : "deoptimize-candidate",
        {{"surface", kernel::toString(problem.surface)}});
    if (!format)
        return tl::unexpected(format.error());
    Result<std::string> system = run::prompt(
        "materialize-system",
        {{"workload_file", run::fenced(problem.workloadText, "toml")},
         {"platform", problem.platform},
         {"device", root.trial.environment.device},
         {"candidate_format", *format},
         {"root_name", problem.rootName},
         {"root_file", prefix == Prefix::Lean     ? "Its file comes with the question while it is the best.\n"
                       : prefix == Prefix::Search ? "Its file comes with the questions about it.\n"
                                                  : run::fenced(root.text, "")},
         {"root_verdict", trialText(root.trial)},
         {"seed",
          problem.seed == 0 ? std::string() : "This is attempt " + std::to_string(problem.seed) + ".\n"}});
    if (!system)
        return tl::unexpected(system.error());
    if (!problem.cards.empty()) {
        const bool index = lean || showsIndex(problem.options);
        const Result<std::string> cards = run::prompt(lean    ? "materialize-some-cards"
                                                      : index ? "materialize-index"
                                                              : "materialize-cards",
                                                      {{"cards", cardsText(problem, index)}});
        if (!cards)
            return tl::unexpected(cards.error());
        *system += '\n' + *cards;
    }
    if (const int lines = mostChangedLines(problem.options); lines > 0) {
        const Result<std::string> limit =
            run::prompt("materialize-limit", {{"lines", std::to_string(lines)}});
        if (!limit)
            return tl::unexpected(limit.error());
        *system += '\n' + *limit;
    }
    Chat chat;
    chat.m_system = std::move(*system);
    chat.m_mostTurnBytes = mostTurnBytes;
    return chat;
}

llm::Request Chat::ask(const std::string &text)
{
    m_turns.push_back({llm::Role::User, text, false});
    m_turnBytes += text.size();
    llm::Request request;
    request.purpose = "materialize";
    request.system = m_system;
    request.messages = m_turns;
    request.messages.back().cacheUpToHere = true;
    return request;
}

void Chat::answer(const std::string &reply)
{
    m_turns.push_back({llm::Role::Assistant, reply.empty() ? "(no answer)" : reply, false});
    m_turnBytes += reply.size();
}

void Chat::restart()
{
    m_turns.clear();
    m_turnBytes = 0;
}

} // namespace klineage::policy
