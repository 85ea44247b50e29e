// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/search/tree.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace klineage::policy {

void Tree::plant(int program, double reward)
{
    Node root;
    root.program = program;
    root.visits = 1;
    root.sum = root.most = reward;
    m_nodes = {std::move(root)};
}

int Tree::add(int parent, int program, double reward, int kind)
{
    Node node;
    node.parent = parent;
    node.program = program;
    node.kind = kind;
    node.visits = 1;
    node.sum = node.most = reward;
    const int id = size();
    m_nodes.push_back(std::move(node));
    at(parent).children.push_back(id);
    for (int above = parent; above >= 0; above = at(above).parent) {
        Node &one = at(above);
        ++one.visits;
        one.sum += reward;
        one.most = std::max(one.most, reward);
    }
    return id;
}

void Tree::await(int node, int by)
{
    for (; node >= 0; node = at(node).parent)
        at(node).pending += by;
}

double Tree::exploration(int node, double c) const
{
    const Node &one = at(node);
    if (one.parent < 0)
        return 0;
    if (one.seen() == 0)
        return std::numeric_limits<double>::infinity();
    return c * std::sqrt(std::log(std::max(1, at(one.parent).seen())) / one.seen());
}

} // namespace klineage::policy
