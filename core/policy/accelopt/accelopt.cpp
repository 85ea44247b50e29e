// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/accelopt/accelopt.h"

#include "core/base/listtext.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"

#include <fmt/core.h>

#include <algorithm>

namespace klineage::policy {

namespace {

constexpr std::size_t longestPlan = 4000;

std::string numberOf(int index, int count)
{
    return fmt::format("{} of {}", index + 1, count);
}

std::string trimmedBlock(const std::string &block)
{
    const std::size_t begin = block.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos)
        return {};
    return block.substr(begin, block.find_last_not_of(" \t\r\n") - begin + 1);
}

} // namespace

const SearchOptions &accelOptOptions()
{
    static const SearchOptions options = withShared({
        {"beam", 2, 1, 50, true, "paper", "B: programs that are worked on"},
        {"plans", 4, 1, 50, true, "paper", "N: plans for each of them"},
        {"attempts", 2, 1, 50, true, "paper", "K: attempts at each plan"},
        {"iterations", 16, 1, 100'000, true, "paper", "T"},
        {"fixes", 1, 0, 20, true, "workbench default", "times that failed attempts are repaired"},
        {"positive", 1.04, 1, 100, false, "paper",
         "speedup over the parent from which an attempt is a good example"},
        {"negative", 1.15, 1, 100, false, "paper", "slowdown beyond which it is a bad one"},
        {"top_items", 8, 0, 1000, true, "paper",
         "examples that are summarized in an iteration, at most half of them good"},
        {"memory", 16, 0, 1000, true, "paper", "examples that are remembered, the newest"},
    });
    return options;
}

AccelOpt::AccelOpt(Problem problem, SearchSettings settings)
    : SearchPolicy(std::move(problem), std::move(settings))
{}

Status AccelOpt::rooted()
{
    m_beam = {0};
    m_memory = ExperienceMemory(static_cast<std::size_t>(settings().count("memory")));
    m_bounds = {settings().number("positive"), 1 / settings().number("negative")};
    return {};
}

std::string AccelOpt::memorySection() const
{
    return lessonSection("What was learnt so far in this run:", m_memory.lines());
}

Result<SearchPolicy::Batch> AccelOpt::plans()
{
    Batch batch;
    const int count = settings().count("plans");
    const std::string iteration = "Iteration " + numberOf(m_iteration, settings().count("iterations"));
    for (const int program : m_beam) {
        for (int number = 0; number < count; ++number) {
            StepText text;
            text.task =
                "You are the planner of a beam search: you decide on one step, and somebody else writes it. This is plan "
                + numberOf(number, count) + " for this program.";
            text.lessons = memorySection();
            text.asked =
                "Reply with one fenced block that holds the plan as plain text, not a candidate: one step that should make the program "
                "faster, why the profile says so, and where in the file it acts. Other plans are made at the same time, so the higher the "
                "number of yours, the less obvious it should be.";
            Result<SearchStep> step =
                question("plan", iteration + ": plan " + numberOf(number, count) + " for " + nameOf(program),
                         program, text);
            if (!step)
                return tl::unexpected(step.error());
            step->ask.wantsPlan = true;
            batch.push_back(std::move(*step));
        }
    }
    return batch;
}

Result<SearchPolicy::Batch> AccelOpt::attempts()
{
    Batch batch;
    const int count = settings().count("attempts");
    for (std::size_t idea = 0; idea < m_ideas.size(); ++idea) {
        for (int number = 0; number < count; ++number) {
            StepText text;
            text.task = "You are the executor of a beam search: you carry out a plan. This is attempt "
                        + numberOf(number, count) + " at it.";
            text.history = "The plan:\n\n" + run::fenced(m_ideas[idea].text, "") + '\n';
            text.asked =
                "Write the program with this one step applied. Say in one line before the block what you change.";
            Result<SearchStep> step =
                question("execute",
                         "Attempt " + numberOf(number, count) + " at plan "
                             + numberOf(static_cast<int>(idea), static_cast<int>(m_ideas.size())) + ", on "
                             + nameOf(m_ideas[idea].parent),
                         m_ideas[idea].parent, text);
            if (!step)
                return tl::unexpected(step.error());
            step->place = static_cast<int>(idea);
            batch.push_back(std::move(*step));
        }
    }
    return batch;
}

Result<SearchPolicy::Batch> AccelOpt::fixes()
{
    Batch batch;
    for (const auto &[idea, program] : m_broken) {
        StepText text;
        text.task = "You are the fixer of a beam search: an attempt at a plan failed.";
        text.history = "The plan:\n\n" + run::fenced(m_ideas[static_cast<std::size_t>(idea)].text, "") + '\n';
        text.asked =
            "Find out why it failed and write it so that it is right and still does what the plan says. Say in one line before the "
            "block what you change.";
        Result<SearchStep> step = question(
            "fix", fmt::format("Repair {}, an attempt at plan {}", nameOf(program), idea + 1), program, text);
        if (!step)
            return tl::unexpected(step.error());
        step->place = idea;
        batch.push_back(std::move(*step));
    }
    return batch;
}

Result<SearchPolicy::Batch> AccelOpt::summaries()
{
    Batch batch;
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        const Experience &item = m_items[i];
        StepText text;
        text.task =
            "You are the summarizer of a beam search: you write down what a change teaches, for planners who see nothing else of it.";
        text.history = "It was changed by this plan:\n\n" + run::fenced(item.plan, "") + "\nand became "
                       + run::factorText(item.speedup) + " as fast as before.\n\n";
        text.top = {item.program};
        text.asked =
            "Reply with one fenced block that holds two or three sentences of plain text, not a candidate: what was changed, when it "
            "applies, and why it "
            + std::string(item.isPositive ? "paid." : "did harm.");
        text.withCards = false;
        Result<SearchStep> step = question("summarize",
                                           std::string("Summarize ") + (item.isPositive ? "a gain" : "a loss")
                                               + " of " + run::factorText(item.speedup),
                                           item.parent, text);
        if (!step)
            return tl::unexpected(step.error());
        step->ask.wantsPlan = true;
        step->place = static_cast<int>(i);
        batch.push_back(std::move(*step));
    }
    return batch;
}

SearchPolicy::Plan AccelOpt::plan()
{
    // A phase without questions leads to the next one; that of plans always has some.
    for (;;) {
        if (m_phase == Phase::Plan && m_iteration >= settings().count("iterations"))
            return End{"The " + std::to_string(m_iteration) + " iterations of the beam search are over."};
        Result<Batch> batch = m_phase == Phase::Plan      ? plans()
                              : m_phase == Phase::Execute ? attempts()
                              : m_phase == Phase::Fix     ? fixes()
                                                          : summaries();
        if (!batch)
            return tl::unexpected(batch.error());
        if (!batch->empty())
            return std::move(*batch);
        absorb({});
    }
}

Result<std::string> AccelOpt::lookAtPlan(const std::string &block) const
{
    const std::string text = trimmedBlock(block);
    if (text.empty())
        return fail(ErrorCode::InvalidInput, "The block is empty; plain text was expected.");
    if (text.size() > longestPlan)
        return fail(ErrorCode::InvalidInput,
                    fmt::format("The block has {} bytes; at most {} of plain text were expected.",
                                text.size(), longestPlan));
    if (text.starts_with("/*klineage"))
        return fail(ErrorCode::InvalidInput, "The block holds a candidate; plain text was expected.");
    return text.substr(0, text.find('\n'));
}

void AccelOpt::takeAttempts(const Batch &batch)
{
    m_broken.clear();
    for (const SearchStep &step : batch) {
        const int id = take(step);
        note(fmt::format("attempt at plan {}: {}", step.place + 1, resultOf(step, id)));
        if (id < 0)
            continue;
        Idea &idea = m_ideas[static_cast<std::size_t>(step.place)];
        const Program &program = population().at(id);
        if (!program.isCorrect())
            m_broken.emplace_back(step.place, id);
        else if (idea.best < 0 || program.score > population().at(idea.best).score)
            idea.best = id;
    }
    // A plan that already has a correct attempt needs no repair.
    std::erase_if(m_broken,
                  [this](const auto &one) { return m_ideas[static_cast<std::size_t>(one.first)].best >= 0; });
}

/// Of each plan its best attempt, if it is a clear gain or a clear loss.
void AccelOpt::collectExperience()
{
    std::vector<Experience> items;
    for (const Idea &idea : m_ideas) {
        if (idea.best < 0)
            continue;
        const double speedup = population().at(idea.best).score / population().at(idea.parent).score;
        if (m_bounds.isPositive(speedup) || m_bounds.isNegative(speedup))
            items.push_back({idea.parent, idea.best, idea.text, speedup, m_bounds.isPositive(speedup), {}});
    }
    m_items = worthwhile(std::move(items), static_cast<std::size_t>(settings().count("top_items")));
}

/// The best of each (parent, plan), the parent where there is none; the fastest of these. "By latency" is by paired gains here.
void AccelOpt::endIteration()
{
    std::set<int> kept;
    for (const Idea &idea : m_ideas)
        kept.insert(idea.best >= 0 ? idea.best : idea.parent);
    if (!kept.empty())
        m_beam =
            population().best({kept.begin(), kept.end()}, static_cast<std::size_t>(settings().count("beam")));
    m_ideas.clear();
    ++m_iteration;
    m_fixes = 0;
    std::vector<std::string> names;
    for (const int id : m_beam)
        names.push_back(nameOf(id));
    note(fmt::format("beam after iteration {}: {}", m_iteration, joined(names)));
}

void AccelOpt::absorb(const Batch &batch)
{
    switch (m_phase) {
    case Phase::Plan:
        for (const SearchStep &step : batch) {
            if (step.outcome.kind == Outcome::Kind::Planned)
                m_ideas.push_back({step.parent, trimmedBlock(step.plan), -1});
        }
        m_phase = Phase::Execute;
        return;
    case Phase::Execute:
    case Phase::Fix:
        takeAttempts(batch);
        if (!m_broken.empty() && m_fixes < settings().count("fixes")) {
            ++m_fixes;
            m_phase = Phase::Fix;
            return;
        }
        m_broken.clear();
        collectExperience();
        m_phase = Phase::Summarize;
        return;
    case Phase::Summarize:
        for (std::size_t i = 0; i < m_items.size(); ++i) {
            const bool isSaid = i < batch.size() && batch[i].outcome.kind == Outcome::Kind::Planned;
            m_items[i].summary = isSaid ? trimmedBlock(batch[i].plan) : m_items[i].plan;
            note(std::string("remembered: ") + (m_items[i].isPositive ? "gain " : "loss ")
                 + run::factorText(m_items[i].speedup));
            m_memory.add(m_items[i]);
        }
        m_items.clear();
        endIteration();
        m_phase = Phase::Plan;
        return;
    }
}

} // namespace klineage::policy
