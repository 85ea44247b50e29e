// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where a target stands on a recorded lineage. A lineage is a curriculum of steps; the target has some of them behind it. A step is
// behind it when the target's features hold everything that the step's card provides, or when the target has an action of the step's
// category that no earlier step accounts for (so that two vectorizations need two). The others are ahead, nearest first. A lineage
// counts by how like its workload and platform are to the target's, and by how much of what the target did lies on it.
#include "core/skills/retrieval/query.h"
#include "core/skills/retrieval/similarity.h"

#include <algorithm>

namespace klineage::skills::retrieval {

namespace {

/// A lineage of a workload with nothing in common is no guide.
constexpr double leastRelatedness = 0.1;

bool isProvided(const Index &index, const Likeness &likeness, Id card)
{
    return card != none
           && retrieval::isProvided(index, likeness,
                                    index.contracts[index.shapes[index.shapeOfCard[card]].contract]);
}

/// Counts of the target's actions by the index's numbers.
std::vector<int> countActions(const Index &index, const Target &target)
{
    std::vector<int> counts(index.actions.size(), 0);
    for (const std::string &action : target.priorActions) {
        if (const Id id = index.actions.find(actionText(action)); id != none)
            ++counts[id];
    }
    return counts;
}

class Walk
{
public:
    Walk(const Index &index, const Likeness &likeness, const Path &path, std::vector<int> &counts,
         std::size_t actionTotal)
        : m_index(index)
        , m_likeness(likeness)
        , m_path(path)
        , m_counts(counts)
        , m_actionTotal(actionTotal)
    {}

    void run(std::vector<PathStep> &out)
    {
        const double related = m_likeness.workload[m_path.workload] * m_likeness.platform[m_path.platform];
        if (related < leastRelatedness)
            return;
        std::vector<Id> taken; // actions to give back to the counts
        std::vector<std::size_t> ahead;
        Id after = none;
        std::size_t behind = 0;
        for (std::size_t i = 0; i < m_path.cards.size(); ++i) {
            const Id action = m_path.categories[i];
            const bool counted = m_counts[action] > 0;
            if (counted) {
                --m_counts[action];
                taken.push_back(action);
                ++behind;
            }
            if (counted || isProvided(m_index, m_likeness, m_path.cards[i])) {
                after = ahead.empty() ? action : after;
                continue;
            }
            ahead.push_back(i);
        }
        for (const Id action : taken)
            ++m_counts[action];
        const double fit = (1.0 + static_cast<double>(behind)) / (1.0 + static_cast<double>(m_actionTotal));
        for (std::size_t i = 0; i < ahead.size(); ++i) {
            if (m_path.cards[ahead[i]] == none)
                continue;
            const int distance = static_cast<int>(i) + 1;
            out.push_back({m_path.cards[ahead[i]], related * fit / distance, distance, &m_path, after});
        }
    }

private:
    const Index &m_index;
    const Likeness &m_likeness;
    const Path &m_path;
    std::vector<int> &m_counts;
    std::size_t m_actionTotal;
};

} // namespace

std::vector<PathStep> stepsAlongPaths(const Index &index, const Likeness &likeness, const Target &target)
{
    std::vector<int> counts = countActions(index, target);
    std::vector<PathStep> steps;
    for (const Path &path : index.paths)
        Walk(index, likeness, path, counts, target.priorActions.size()).run(steps);
    const auto nearer = [](const PathStep &a, const PathStep &b) {
        if (a.similarity != b.similarity)
            return a.similarity > b.similarity;
        return a.card != b.card ? a.card < b.card : a.path->lineage < b.path->lineage;
    };
    std::sort(steps.begin(), steps.end(), nearer);
    std::vector<char> seen(index.shapeOfCard.size(), 0);
    std::erase_if(steps, [&](const PathStep &step) {
        const bool again = seen[step.card] != 0;
        seen[step.card] = 1;
        return again;
    });
    return steps;
}

} // namespace klineage::skills::retrieval
