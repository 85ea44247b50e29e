// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

namespace klineage::policy {

/// The tree of a Monte Carlo search: visits and rewards, nothing of programs. Node 0 is the root.
class Tree
{
public:
    struct Node {
        int parent = -1;
        int program = -1; ///< in the population; -1: the answer brought none, and nothing grows here
        int kind = 0;     ///< the policy's own word for how it was made
        std::vector<int> children;
        int visits = 0;
        int pending =
            0; ///< questions below it that are asked and not answered: they count as visits without a reward
        double sum = 0;
        double most = 0; ///< largest reward at or below it
        int misses = 0;  ///< children that did not improve on it, since somebody looked at it anew

        [[nodiscard]] int seen() const { return visits + pending; }
        [[nodiscard]] double mean() const { return visits > 0 ? sum / visits : 0; }
    };

    /// Begins anew with a root that was visited once.
    void plant(int program, double reward);
    /// A child that was visited once, with its reward, which all nodes above it see.
    int add(int parent, int program, double reward, int kind = 0);
    /// A question below the node is in the air, or (by = -1) it is no more.
    void await(int node, int by);

    [[nodiscard]] Node &at(int node) { return m_nodes[static_cast<std::size_t>(node)]; }
    [[nodiscard]] const Node &at(int node) const { return m_nodes[static_cast<std::size_t>(node)]; }
    [[nodiscard]] int size() const { return static_cast<int>(m_nodes.size()); }
    /// c·√(ln N_parent / n); nothing known of one that was never visited: infinity.
    [[nodiscard]] double exploration(int node, double c) const;

private:
    std::vector<Node> m_nodes;
};

} // namespace klineage::policy
