// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/search/searchpolicy.h"

#include "core/base/numbertext.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"
#include "core/talk/trialtext.h"

#include <algorithm>

namespace klineage::policy {

namespace {

constexpr std::size_t longestChange = 200;
constexpr std::size_t longestResult = 300;
constexpr std::size_t longestProgramLine = longestChange + 200; ///< with its figures

/// The first line of a text that says something, without splitting a character.
std::string firstLine(std::string_view text, std::size_t most)
{
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos)
        return {};
    text = text.substr(begin);
    text = text.substr(0, text.find_first_of("\r\n"));
    if (text.size() <= most)
        return std::string(text);
    std::size_t end = most;
    while (end > 0 && (text[end] & '\xc0') == '\x80')
        --end;
    return std::string(text.substr(0, end)) + "…";
}

} // namespace

std::string changeOf(const std::string &reply)
{
    const std::string said = firstLine(std::string_view(reply).substr(0, reply.find("```")), longestChange);
    return said.empty() || said.starts_with("/*") || said.starts_with("~~~")
               ? "a change that is not described"
               : said;
}

std::string lessonSection(const std::string &heading, const std::vector<std::string> &lessons)
{
    if (lessons.empty())
        return {};
    std::string text = heading + "\n\n";
    for (const std::string &lesson : lessons)
        text += "- " + lesson + '\n';
    return text + '\n';
}

SearchPolicy::SearchPolicy(Problem problem, SearchSettings settings)
    : m_problem(std::move(problem))
    , m_settings(std::move(settings))
    , m_draws(m_problem.seed)
{}

Status SearchPolicy::begin(const Tried &root)
{
    Result<Chat> chat =
        Chat::begin(m_problem, root, 0, promptBytes() > 0 ? Chat::Prefix::Search : Chat::Prefix::Whole);
    if (!chat)
        return tl::unexpected(chat.error());
    m_chat = std::move(*chat);
    m_population.addRoot(root);
    if (Status begun = rooted(); !begun)
        return begun;
    planNext();
    return {};
}

void SearchPolicy::planNext()
{
    m_batch.clear();
    m_asked = m_observed = 0;
    if (m_doneInARow >= m_settings.count("done_limit")) {
        m_end = End{"The author says " + std::to_string(m_doneInARow)
                    + " times in a row that nothing is left to do"
                    + (m_doneReason.empty() ? std::string(".") : ": " + m_doneReason)};
        return;
    }
    Plan planned = plan();
    if (!planned)
        m_problemOfPlan = planned.error();
    else if (End *end = std::get_if<End>(&*planned))
        m_end = std::move(*end);
    else
        m_batch = std::move(std::get<Batch>(*planned));
}

Result<Move> SearchPolicy::next()
{
    if (m_problemOfPlan)
        return tl::unexpected(*m_problemOfPlan);
    if (m_end)
        return Move(*m_end);
    return Move(m_batch[m_asked++].ask);
}

std::size_t SearchPolicy::ahead() const
{
    return std::max<std::size_t>(1, m_batch.size() - m_asked);
}

Result<std::string> SearchPolicy::readPlan(const std::string &block)
{
    SearchStep &step = m_batch[m_observed];
    if (!step.ask.wantsPlan)
        return fail(ErrorCode::InvalidInput, "No plan was asked for.");
    Result<std::string> line = lookAtPlan(block);
    if (line)
        step.plan = block;
    return line;
}

Result<std::string> SearchPolicy::lookAtPlan(const std::string &) const
{
    return fail(ErrorCode::InvalidInput, "No plan was asked for.");
}

void SearchPolicy::observe(const Outcome &outcome)
{
    m_batch[m_observed++].outcome = outcome;
    if (outcome.kind == Outcome::Kind::Done) {
        ++m_doneInARow;
        m_doneReason = outcome.problem;
    } else {
        m_doneInARow = 0;
    }
    if (m_observed < m_batch.size())
        return;
    absorb(m_batch);
    planNext();
}

std::string SearchPolicy::nameOf(int program) const
{
    return program == 0 ? "the root" : "program " + std::to_string(program);
}

/// Of a question in all; 0: whatever it comes to.
std::size_t SearchPolicy::promptBytes() const
{
    return static_cast<std::size_t>(m_settings.count("prompt_bytes"));
}

std::string SearchPolicy::fileOf(int program) const
{
    const std::string &text = m_population.at(program).tried.text;
    return program == 0 && promptBytes() == 0 ? "the root file\n" : "this file:\n\n" + run::fenced(text, "");
}

/// Programs with their figures and, as long as there is room, their text; none of them twice in a prompt.
std::string SearchPolicy::section(const std::string &heading, const std::vector<int> &programs,
                                  std::set<int> &shown, std::size_t &bytes) const
{
    std::string text;
    for (const int id : programs) {
        if (!shown.insert(id).second)
            continue;
        const Program &program = m_population.at(id);
        text += "- Program " + std::to_string(id) + " (" + program.change + "): "
                + run::figuresText(program.tried.trial) + ", " + fixedText(program.score, 3) + "× the root";
        if (id == 0 && promptBytes() == 0) {
            text += ": the root file.\n\n";
        } else if (program.tried.text.size() > bytes) {
            text += ". Its text is left out here.\n\n";
        } else {
            bytes -= program.tried.text.size();
            text += ":\n\n" + run::fenced(program.tried.text, "") + '\n';
        }
    }
    return text.empty() ? text : heading + "\n\n" + text;
}

Result<SearchStep> SearchPolicy::question(const std::string &action, const std::string &title, int program,
                                          const StepText &text)
{
    const auto promptWith = [&](const std::string &top, const std::string &diverse) {
        return run::prompt("search-step",
                           {{"task", text.task},
                            {"base", fileOf(program)},
                            {"verdict", text.verdict.empty() ? trialText(m_population.at(program).tried.trial)
                                                             : text.verdict},
                            {"history", text.history},
                            {"top", top},
                            {"diverse", diverse},
                            {"lessons", text.lessons},
                            {"asked", text.asked}});
    };
    const auto leftBy = [&](const std::string &prompt) {
        const std::size_t used = m_chat->prefixBytes() + prompt.size();
        return promptBytes() - std::min(used, promptBytes());
    };
    std::size_t bytes = static_cast<std::size_t>(m_settings.count("shown_bytes"));
    if (promptBytes() > 0) {
        const Result<std::string> bare = promptWith({}, {});
        if (!bare)
            return tl::unexpected(bare.error());
        // Other programs and cards share what is left. A program's line has room too, whether its text is shown or not.
        const std::size_t lines = (text.top.size() + text.diverse.size()) * longestProgramLine;
        const bool shares = text.withCards && !m_problem.cards.empty();
        const std::size_t share = shares ? leftBy(*bare) / 2 : leftBy(*bare);
        bytes = std::min(bytes, share - std::min(share, lines));
    }
    std::set<int> shown{program};
    const std::string top = section("The best programs, best first:", text.top, shown, bytes);
    const std::string diverse = section("Programs of another kind:", text.diverse, shown, bytes);
    Result<std::string> prompt = promptWith(top, diverse);
    if (!prompt)
        return tl::unexpected(prompt.error());
    SearchStep step;
    step.parent = program;
    step.ask.action = action;
    step.ask.title = title;
    step.ask.baseText = m_population.at(m_population.baseFor(program)).tried.text;
    if (promptBytes() > 0) {
        if (text.withCards)
            *prompt += m_cardTurns.next(m_problem.cards, leftBy(*prompt), step.ask.cards);
    } else {
        for (const LoadedCard &card : m_problem.cards)
            step.ask.cards.push_back(card.name);
    }
    m_chat->restart();
    step.ask.request = m_chat->ask(*prompt);
    return step;
}

int SearchPolicy::take(const SearchStep &step, int island)
{
    if (step.outcome.kind != Outcome::Kind::Gated)
        return -1;
    return m_population.add(step.outcome.tried, step.parent, island, changeOf(step.outcome.reply));
}

std::string SearchPolicy::resultOf(const SearchStep &step, int program) const
{
    if (program < 0)
        return step.outcome.problem.empty() ? "no candidate" : firstLine(step.outcome.problem, longestResult);
    const Program &made = m_population.at(program);
    if (!made.isCorrect())
        return firstLine(run::verdictLine(made.tried.trial), longestResult);
    const gate::Comparison *parent = made.tried.trial.comparison("parent");
    return "correct, " + run::factorText(parent->speedup.value) + " what it was made from ("
           + gate::toString(parent->change) + "), " + run::factorText(made.score) + " the root";
}

} // namespace klineage::policy
