// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/kernelpro/kernelpro.h"

#include "core/policy/kernelpro/guidance.h"
#include "core/talk/figures.h"
#include "core/talk/trialtext.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace klineage::policy {

const SearchOptions &kernelProOptions()
{
    static const SearchOptions options = withShared({
        {"temperatures", 5, 1, 20, true, "paper", "groups of seeds"},
        {"seeds_each", 3, 1, 100, true, "paper", "seeds of a group"},
        {"hottest", 0, 0, 2, false, "workbench default",
         "temperature that the last group of seeds is asked at, the others in equal steps below it; 0: none is sent, since many models "
         "refuse one"},
        {"iterations", 30, 1, 100'000, true, "paper", "of the tree search, after the seeds"},
        {"candidates", 2, 1, 20, true, "paper", "of an iteration, as far as the node may have them"},
        {"widen_failed", 1, 0.1, 20, false, "workbench default", "C of a program that failed"},
        {"widen_improving", 2, 0.1, 20, false, "workbench default", "C of a correct program"},
        {"prune_after", 3, 1, 100, true, "workbench default",
         "children without improvement, then a node is a dead end"},
        {"explore_weight", 0.7, 0, 10, false, "workbench default", "weight of what was visited little"},
        {"failed_reward", -1, -10, 0, false, "workbench default", "reward of a failure, beside ln(score)"},
        {"memory", 8, 0, 100, true, "workbench default", "lessons in a prompt, those that changed most"},
    });
    return options;
}

KernelPro::KernelPro(Problem problem, SearchSettings settings)
    : SearchPolicy(std::move(problem), std::move(settings))
{}

Status KernelPro::rooted()
{
    m_tree.plant(0, 0);
    return {};
}

int KernelPro::seedCount() const
{
    return settings().count("temperatures") * settings().count("seeds_each");
}

int KernelPro::mostChildren(int node) const
{
    const Tree::Node &one = m_tree.at(node);
    const bool isCorrect = population().at(one.program).isCorrect();
    const double c = settings().number(isCorrect ? "widen_improving" : "widen_failed");
    return static_cast<int>(std::ceil(c * std::sqrt(one.visits)));
}

bool KernelPro::isDeadEnd(int node) const
{
    return m_tree.at(node).misses >= settings().count("prune_after") * m_looks;
}

bool KernelPro::canGrow(int node) const
{
    const Tree::Node &one = m_tree.at(node);
    return one.program >= 0 && !isDeadEnd(node) && static_cast<int>(one.children.size()) < mostChildren(node);
}

bool KernelPro::isAlive(int node) const
{
    const std::vector<int> &children = m_tree.at(node).children;
    return canGrow(node)
           || std::any_of(children.begin(), children.end(), [this](int child) { return isAlive(child); });
}

double KernelPro::reward(int program) const
{
    if (program < 0 || !population().at(program).isCorrect())
        return settings().number("failed_reward");
    return std::log(population().at(program).score);
}

/// Down from the root, which is alive.
int KernelPro::select() const
{
    int node = 0;
    while (!canGrow(node)) {
        int chosen = -1;
        double most = -std::numeric_limits<double>::infinity();
        for (const int child : m_tree.at(node).children) {
            const double value =
                m_tree.at(child).mean() + m_tree.exploration(child, settings().number("explore_weight"));
            if (isAlive(child) && (chosen < 0 || value > most)) {
                chosen = child;
                most = value;
            }
        }
        node = chosen;
    }
    return node;
}

std::string KernelPro::verdictOf(int program) const
{
    const gate::Trial &trial = population().at(program).tried.trial;
    if (trial.latencyNs.value <= 0)
        return trialText(trial);
    return run::sentence(run::figuresText(trial)) + "\nWhat the profile says:\n" + guidanceText(trial);
}

std::string KernelPro::memory() const
{
    std::vector<Memory> sorted = m_memory;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Memory &a, const Memory &b) { return a.weight > b.weight; });
    sorted.resize(std::min(sorted.size(), static_cast<std::size_t>(settings().count("memory"))));
    std::vector<std::string> lessons;
    for (Memory &one : sorted)
        lessons.push_back(std::move(one.text));
    return lessonSection("What the search has learnt so far, anywhere in the tree:", lessons);
}

Result<SearchStep> KernelPro::seed(int number)
{
    const std::string of = fmt::format("{} of {}", number + 1, seedCount());
    StepText text;
    text.task =
        "A tree search over programs begins with seeds that differ from each other. This is seed " + of + '.';
    text.verdict = verdictOf(0);
    text.asked =
        "Write a program that is faster than the root: an approach of your own, another one than most would take at once where "
        "the number of the seed is high. Say in one line before the block what you change.";
    Result<SearchStep> step = question("seed", "Seed " + of, 0, text);
    if (const double hottest = settings().number("hottest"); step && hottest > 0) {
        const int groups = settings().count("temperatures");
        const int group = number / settings().count("seeds_each");
        step->ask.request.temperature = hottest * (group + 1) / groups;
    }
    return step;
}

Result<SearchStep> KernelPro::candidate(int node, int number, int of)
{
    const Tree::Node &one = m_tree.at(node);
    const Program &program = population().at(one.program);
    StepText text;
    text.task =
        fmt::format("A tree search over programs goes on. This is candidate {} of {} in iteration {}.",
                    number + 1, of, m_iteration + 1);
    text.verdict = verdictOf(one.program);
    std::vector<std::string> tried;
    for (const int child : one.children) {
        const int made = m_tree.at(child).program;
        tried.push_back(made < 0 ? "an answer without a candidate"
                                 : population().at(made).change + ": "
                                       + (population().at(made).isCorrect()
                                              ? run::figuresText(population().at(made).tried.trial)
                                              : run::verdictLine(population().at(made).tried.trial)));
    }
    text.history = lessonSection("What was already tried on it:", tried);
    text.lessons = memory();
    text.asked =
        program.isCorrect()
            ? "Write one program that is faster: act on what the profile says, and do not repeat what was tried. Say in one line "
              "before the block what you change."
            : "This program failed. Write one that is right and keeps what it was meant to bring. Say in one line before the "
              "block what you change.";
    const std::string title =
        fmt::format("Iteration {}: {}{} ({} of {} children after {} visits)", m_iteration + 1,
                    program.isCorrect() ? "improve " : "repair ", nameOf(one.program), one.children.size(),
                    mostChildren(node), one.visits);
    Result<SearchStep> step = question("expand", title, one.program, text);
    if (step)
        step->place = node;
    return step;
}

SearchPolicy::Plan KernelPro::plan()
{
    Batch batch;
    if (m_iteration < 0) {
        for (int number = 0; number < seedCount(); ++number) {
            Result<SearchStep> step = seed(number);
            if (!step)
                return tl::unexpected(step.error());
            batch.push_back(std::move(*step));
        }
        return batch;
    }
    const int iterations = settings().count("iterations");
    if (m_iteration >= iterations)
        return End{"The " + std::to_string(iterations) + " iterations of the tree search are over."};
    if (!isAlive(0)) {
        ++m_looks;
        note("every branch is a dead end: look " + std::to_string(m_looks) + " at each node");
    }
    if (!isAlive(0))
        return End{"No node of the tree may have another child."};
    const int node = select();
    const int room = mostChildren(node) - static_cast<int>(m_tree.at(node).children.size());
    const int count = std::min(settings().count("candidates"), room);
    note(fmt::format("iteration {}: node {}, {} of {} children, {} visits", m_iteration + 1, node,
                     m_tree.at(node).children.size(), mostChildren(node), m_tree.at(node).visits));
    for (int number = 0; number < count; ++number) {
        Result<SearchStep> step = candidate(node, number, count);
        if (!step)
            return tl::unexpected(step.error());
        batch.push_back(std::move(*step));
    }
    return batch;
}

void KernelPro::remember(const SearchStep &step, int program)
{
    if (program < 0)
        return;
    const Program &made = population().at(program);
    const double before = population().at(made.base).score;
    const double weight =
        made.isCorrect() ? std::abs(std::log(made.score / before)) : -settings().number("failed_reward") / 2;
    m_memory.push_back({made.change + ": " + resultOf(step, program), weight});
}

void KernelPro::absorb(const Batch &batch)
{
    for (const SearchStep &step : batch) {
        const int id = take(step);
        const int node = m_tree.add(step.place, id, reward(id));
        remember(step, id);
        // Of a failure a correct program is an improvement, of a correct one a certain gain.
        const bool isRepair = !population().at(step.parent).isCorrect();
        const bool improves =
            id >= 0 && population().at(id).isCorrect() && (isRepair || population().at(id).gains);
        note(fmt::format("node {} under {}: {}", node, step.place, resultOf(step, id)));
        if (improves || m_iteration < 0) // seeds say nothing about the root
            continue;
        const bool wasDead = isDeadEnd(step.place);
        ++m_tree.at(step.place).misses;
        if (!wasDead && isDeadEnd(step.place))
            note(fmt::format("dead end: node {} after {} children without improvement", step.place,
                             m_tree.at(step.place).misses));
    }
    ++m_iteration;
}

} // namespace klineage::policy
