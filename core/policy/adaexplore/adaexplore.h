// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/adaexplore/rules.h"
#include "core/policy/search/searchpolicy.h"
#include "core/policy/search/tree.h"

namespace klineage::policy {

[[nodiscard]] const SearchOptions &adaExploreOptions();

/// AdaExplore: rules from failures, and a tree of small and large steps. From the root the walk takes the child of largest value
/// α·max + (1 − α)·mean + c·√(ln N_parent / n), unless growing here is worth more: the best child's value without its last term, plus
/// c·√(ln N / children²). A large step (a program written anew with a pool of the best in view) is made at the root, when a node has its
/// share of small children, or with probability p; otherwise a small one, a revision of a few places.
class AdaExplore : public SearchPolicy
{
public:
    enum Kind { RootKind, Small, Large };

    AdaExplore(Problem problem, SearchSettings settings);

    [[nodiscard]] const Tree &tree() const { return m_tree; }
    [[nodiscard]] const FailureRules &rules() const { return m_rules; }
    /// 0: does not compile (or is no candidate), 0.05: fails otherwise, 0.4 … 1.6: linear in the speedup, clipped to 0.1 … 10.
    [[nodiscard]] static double rewardOf(const Program *program);

private:
    [[nodiscard]] Status rooted() override;
    [[nodiscard]] Plan plan() override;
    void absorb(const Batch &batch) override;

    [[nodiscard]] double worth(int node) const; ///< α·max + (1 − α)·mean
    [[nodiscard]] int select() const;
    [[nodiscard]] int smallChildren(int node, const Batch &asked) const;
    [[nodiscard]] Result<SearchStep> step(const Batch &asked);

    Tree m_tree;
    FailureRules m_rules;
    int m_step = 0;
};

} // namespace klineage::policy
