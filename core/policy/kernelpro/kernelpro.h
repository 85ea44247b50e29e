// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/search/searchpolicy.h"
#include "core/policy/search/tree.h"

namespace klineage::policy {

[[nodiscard]] const SearchOptions &kernelProOptions();

/// Monte Carlo tree search after KernelPro. Seeds first, all from the root. Then each iteration walks down from the root, by the mean
/// reward ln(score) and what is known least, to a node that may have one more child: at most ⌈C·√n⌉ after n visits, where C is
/// smaller for a program that failed than for one that can be improved. A node whose children did not improve on it three times is a dead
/// end and gets no more; when all are, each is looked at once more. Class, findings of the tools that fire and what was
/// learnt anywhere in the tree stand in the prompt. A batch is all seeds, then the candidates of an iteration.
class KernelPro : public SearchPolicy
{
public:
    KernelPro(Problem problem, SearchSettings settings);

    [[nodiscard]] const Tree &tree() const { return m_tree; }
    /// ⌈C·√n⌉ of a node as it is now.
    [[nodiscard]] int mostChildren(int node) const;
    /// It did not improve too often, and gets no more children.
    [[nodiscard]] bool isDeadEnd(int node) const;
    [[nodiscard]] int seedCount() const;

private:
    [[nodiscard]] Status rooted() override;
    [[nodiscard]] Plan plan() override;
    void absorb(const Batch &batch) override;

    [[nodiscard]] Result<SearchStep> seed(int number);
    [[nodiscard]] Result<SearchStep> candidate(int node, int number, int of);
    [[nodiscard]] bool canGrow(int node) const;
    [[nodiscard]] bool isAlive(int node) const;
    [[nodiscard]] int select() const;
    [[nodiscard]] double reward(int program) const;
    [[nodiscard]] std::string verdictOf(int program) const;
    [[nodiscard]] std::string memory() const;
    void remember(const SearchStep &step, int program);

    /// What was learnt from a candidate, wherever it stands in the tree.
    struct Memory {
        std::string text;
        double weight = 0; ///< how far the step went up or down: |ln|
    };
    Tree m_tree;
    std::vector<Memory> m_memory;
    int m_iteration = -1; ///< −1: the seeds
    int m_looks = 1;      ///< how often each node was given its allowance of misses
};

} // namespace klineage::policy
