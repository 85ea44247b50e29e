// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/search/population.h"

#include "core/talk/reply.h"

#include <algorithm>
#include <numeric>

namespace klineage::policy {

namespace {

double complexityOf(const std::string &text)
{
    return static_cast<double>(normalizedCode(text).size());
}

} // namespace

void Population::addRoot(const Tried &root)
{
    Program program;
    program.tried = root;
    program.change = "the root";
    program.complexity = complexityOf(root.text);
    program.score = 1;
    m_programs = {std::move(program)};
}

int Population::add(const Tried &tried, int parent, int island, std::string change)
{
    Program program;
    program.id = size();
    program.parent = parent;
    program.base = baseFor(parent);
    program.generation = at(parent).generation + 1;
    program.island = island;
    program.tried = tried;
    program.change = std::move(change);
    program.complexity = complexityOf(tried.text);
    const gate::Comparison *comparison = tried.trial.comparison("parent");
    if (tried.trial.verdict.status == gate::VerdictStatus::Correct && comparison
        && comparison->speedup.value > 0) {
        program.score = at(program.base).score * comparison->speedup.value;
        program.gains = comparison->change == gate::Change::Gain;
    }
    m_programs.push_back(std::move(program));
    return m_programs.back().id;
}

int Population::baseFor(int id) const
{
    while (!at(id).isCorrect())
        id = at(id).parent;
    return id;
}

std::vector<int> Population::best(std::vector<int> ids, std::size_t most) const
{
    std::erase_if(ids, [this](int id) { return !at(id).isCorrect(); });
    std::sort(ids.begin(), ids.end(), [this](int a, int b) {
        return at(a).score != at(b).score ? at(a).score > at(b).score : a < b;
    });
    ids.resize(std::min(ids.size(), most));
    return ids;
}

std::vector<int> Population::best(std::size_t most) const
{
    std::vector<int> ids(m_programs.size());
    std::iota(ids.begin(), ids.end(), 0);
    return best(std::move(ids), most);
}

} // namespace klineage::policy
