// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/adaexplore/adaexplore.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace klineage::policy {

namespace {

constexpr std::size_t mostRules = 20; ///< in a prompt

} // namespace

const SearchOptions &adaExploreOptions()
{
    static const SearchOptions options = withShared({
        {"steps", 50, 1, 100'000, true, "paper (code: 25)", "questions"},
        {"explore_weight", 0.3, 0, 10, false, "paper (code: 0.25)", "c"},
        {"max_weight", 0, 0, 1, false, "paper (code: 1)",
         "α: weight of the best reward below a node against the mean"},
        {"large_chance", 0.2, 0, 1, false, "paper (code: 0.25)", "p of a large step"},
        {"small_limit", 2, 0, 100, true, "paper", "small children of a node, then a large step"},
        {"pool", 5, 1, 20, true, "paper", "best programs in view of a large step"},
        {"rule_count", 3, 1, 1000, true, "paper",
         "times that a failure happened, then its rule is in the prompt"},
        {"batch", 1, 1, 32, true, "workbench default",
         "steps that are asked before the answers of the first are looked at"},
    });
    return options;
}

AdaExplore::AdaExplore(Problem problem, SearchSettings settings)
    : SearchPolicy(std::move(problem), std::move(settings))
{}

double AdaExplore::rewardOf(const Program *program)
{
    constexpr double least = 0.1;
    constexpr double most = 10;
    if (!program || program->tried.trial.verdict.status == gate::VerdictStatus::CompileError)
        return 0;
    if (!program->isCorrect())
        return 0.05;
    return 0.4 + 1.2 * (std::clamp(program->score, least, most) - least) / (most - least);
}

Status AdaExplore::rooted()
{
    m_tree.plant(0, rewardOf(&population().at(0)));
    return {};
}

double AdaExplore::worth(int node) const
{
    const Tree::Node &one = m_tree.at(node);
    const double alpha = settings().number("max_weight");
    return alpha * one.most + (1 - alpha) * one.mean();
}

int AdaExplore::select() const
{
    const double c = settings().number("explore_weight");
    for (int node = 0;;) {
        const Tree::Node &one = m_tree.at(node);
        int chosen = -1;
        double most = 0;
        double best = 0;
        for (const int child : one.children) {
            if (m_tree.at(child).program < 0)
                continue;
            const double value = worth(child) + m_tree.exploration(child, c);
            best = chosen < 0 ? worth(child) : std::max(best, worth(child));
            if (chosen < 0 || value > most) {
                chosen = child;
                most = value;
            }
        }
        const double children = static_cast<double>(one.children.size()) + one.pending;
        const double grow = best + c * std::sqrt(std::log(std::max(1, one.seen()))) / std::max(children, 1.0);
        if (chosen < 0 || grow >= most)
            return node;
        node = chosen;
    }
}

/// Those that are asked for in the same batch count.
int AdaExplore::smallChildren(int node, const Batch &asked) const
{
    const std::vector<int> &children = m_tree.at(node).children;
    const auto there = std::count_if(children.begin(), children.end(),
                                     [this](int child) { return m_tree.at(child).kind == Small; });
    const auto coming = std::count_if(asked.begin(), asked.end(), [node](const SearchStep &step) {
        return step.place == node && step.kind == Small;
    });
    return static_cast<int>(there + coming);
}

Result<SearchStep> AdaExplore::step(const Batch &asked)
{
    const int node = select();
    const int program = m_tree.at(node).program;
    const int small = smallChildren(node, asked);
    const bool isDrawn = draws().uniform() < settings().number("large_chance");
    const bool isFull = small >= settings().count("small_limit");
    const bool isLarge = node == 0 || isFull || isDrawn;
    const char *why = node == 0 ? "at the root"
                      : isFull  ? "small children are enough"
                      : isDrawn ? "drawn"
                                : "";
    ++m_step;
    const std::string of = fmt::format("{} of {}", m_step, settings().count("steps"));
    StepText text;
    text.task =
        std::string("This is ") + (isLarge ? "a large step, " : "a small step, ") + of + " of a tree search.";
    text.lessons = lessonSection("Rules from failures that happened again and again; keep to them:",
                                 m_rules.known(settings().count("rule_count"), mostRules));
    const bool isCorrect = population().at(program).isCorrect();
    if (isLarge) {
        text.top = population().best(static_cast<std::size_t>(settings().count("pool")));
        text.asked =
            "Write a program anew, with another structure or another algorithm than the program to change; the pool above shows "
            "what has worked. Say in one line before the block what you change.";
    } else {
        text.asked =
            isCorrect
                ? std::string(
                    "Revise the program in one or two places so that it is faster. Keep every other line as it is. "
                    "Say in one line before the block what you change.")
                : std::string(
                    "The program failed. Revise the places that made it fail and keep every other line as it is. "
                    "Say in one line before the block what you change.");
    }
    Result<SearchStep> made = question(isLarge ? "large-step" : "small-step",
                                       std::string(isLarge ? "Large" : "Small") + " step " + of + ": "
                                           + (isLarge ? "anew beside " : "revise ") + nameOf(program)
                                           + (isLarge ? std::string(" (") + why + ')' : std::string()),
                                       program, text);
    if (!made)
        return made;
    made->place = node;
    made->kind = isLarge ? Large : Small;
    note(fmt::format("step {}: {} at node {}, {} small children{}", m_step, made->ask.action, node, small,
                     *why ? std::string(", ") + why : std::string()));
    return made;
}

SearchPolicy::Plan AdaExplore::plan()
{
    const int steps = settings().count("steps");
    if (m_step >= steps)
        return End{"The " + std::to_string(steps) + " steps of the tree search are over."};
    Batch batch;
    const std::size_t count = static_cast<std::size_t>(std::min(settings().count("batch"), steps - m_step));
    while (batch.size() < count) {
        Result<SearchStep> made = step(batch);
        if (!made)
            return tl::unexpected(made.error());
        m_tree.await(made->place, 1);
        batch.push_back(std::move(*made));
    }
    return batch;
}

void AdaExplore::absorb(const Batch &batch)
{
    for (const SearchStep &step : batch)
        m_tree.await(step.place, -1);
    for (const SearchStep &step : batch) {
        const int id = take(step);
        const Program *program = id < 0 ? nullptr : &population().at(id);
        const double reward = rewardOf(program);
        const int node = m_tree.add(step.place, id, reward, step.kind);
        note(fmt::format("node {} under {}: {}", node, step.place, resultOf(step, id)));
        if (!program)
            continue;
        if (const FailureRules::Rule *rule = m_rules.learn(program->tried.trial.verdict))
            note(fmt::format("rule, {} times: {}", rule->count, rule->key));
    }
}

} // namespace klineage::policy
