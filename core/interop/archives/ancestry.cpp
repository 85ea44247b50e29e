// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/archives/ancestry.h"

#include "core/interop/archives/archivetext.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

namespace klineage::interop {

Ancestry::Ancestry(Archive &archive)
    : m_archive(archive)
    , m_parent(archive.programs.size(), none)
    , m_ancestor(archive.programs.size(), none)
    , m_original(archive.programs.size())
{
    std::iota(m_original.begin(), m_original.end(), 0);
    findParents();
    openRings();
}

const ArchivedProgram &Ancestry::at(int program) const
{
    return m_archive.programs[static_cast<std::size_t>(program)];
}

void Ancestry::findParents()
{
    std::map<std::string, int> known;
    for (std::size_t i = 0; i < m_archive.programs.size(); ++i) {
        ArchivedProgram &program = m_archive.programs[i];
        if (!known.emplace(program.id, static_cast<int>(i)).second && program.leftOut.empty())
            program.leftOut = "has the id of another one before it";
    }
    Tally orphans;
    for (std::size_t i = 0; i < m_archive.programs.size(); ++i) {
        const ArchivedProgram &program = m_archive.programs[i];
        if (program.parent.empty())
            continue;
        if (const auto parent = known.find(program.parent); parent != known.end())
            m_parent[i] = parent->second;
        else
            orphans.add(firstLine(program.id, 40));
    }
    if (orphans.count() > 0)
        m_notes.push_back("Programs whose parent is not in the archive, and which are taken for roots: "
                          + orphans.text() + '.');
}

void Ancestry::openRings()
{
    constexpr int unseen = -1;
    std::vector<int> seenFrom(m_parent.size(), unseen);
    Tally rings;
    for (int start = 0; start < static_cast<int>(m_parent.size()); ++start) {
        int at = start;
        while (at != none && seenFrom[static_cast<std::size_t>(at)] == unseen) {
            seenFrom[static_cast<std::size_t>(at)] = start;
            at = m_parent[static_cast<std::size_t>(at)];
        }
        if (at == none || seenFrom[static_cast<std::size_t>(at)] != start)
            continue;
        // A ring: the one of the lowest generation is where it began.
        int oldest = at;
        for (int next = m_parent[static_cast<std::size_t>(at)]; next != at;
             next = m_parent[static_cast<std::size_t>(next)]) {
            const auto age = [this](int one) { return std::pair(this->at(one).generation.value_or(0), one); };
            if (age(next) < age(oldest))
                oldest = next;
        }
        m_parent[static_cast<std::size_t>(oldest)] = none;
        rings.add(firstLine(this->at(oldest).id, 40));
    }
    if (rings.count() > 0)
        m_notes.push_back(
            "Programs that are their own ancestors; their ring is opened before the oldest, which is taken for a "
            "root: "
            + rings.text() + '.');
}

std::vector<int> Ancestry::parentsFirst() const
{
    std::vector<int> order;
    std::vector<bool> isIn(m_parent.size(), false);
    for (int start = 0; start < static_cast<int>(m_parent.size()); ++start) {
        const std::size_t before = order.size();
        for (int one = start; one != none && !isIn[static_cast<std::size_t>(one)];
             one = m_parent[static_cast<std::size_t>(one)]) {
            isIn[static_cast<std::size_t>(one)] = true;
            order.push_back(one);
        }
        std::reverse(order.begin() + static_cast<std::ptrdiff_t>(before), order.end());
    }
    return order;
}

bool Ancestry::isTaken(int program) const
{
    return at(program).leftOut.empty() && originalOf(program) == program;
}

bool Ancestry::isBetter(int a, int b) const
{
    const auto key = [this](int one) {
        const ArchivedProgram &program = at(one);
        return std::tuple(program.correct != false, program.score.has_value(), program.score.value_or(0),
                          -program.generation.value_or(0), -one);
    };
    return key(a) > key(b);
}

int Ancestry::best()
{
    int named = none;
    int best = none;
    for (int one = 0; one < static_cast<int>(m_archive.programs.size()); ++one) {
        const ArchivedProgram &program = at(one);
        if (named == none && !m_archive.best.empty() && program.id == m_archive.best)
            named = one;
        if (program.leftOut.empty() && program.score && program.correct != false
            && (best == none || isBetter(one, best)))
            best = one;
    }
    if (named != none && at(named).leftOut.empty())
        return named;
    const std::string name = firstLine(m_archive.best, 40);
    if (named != none)
        m_notes.push_back("The program that the archive calls its best, " + name
                          + ", is left out, because it " + at(named).leftOut
                          + "; the one with the best score stands in its place.");
    else if (!m_archive.best.empty())
        m_notes.push_back("The program that the archive calls its best, " + name
                          + ", is not in it; the one with the best score stands in its place.");
    return best;
}

void Ancestry::joinCopies()
{
    Tally copies;
    Tally rootCopies;
    std::map<std::string_view, int> roots;
    for (const int one : parentsFirst()) {
        const auto index = static_cast<std::size_t>(one);
        const int parent = m_parent[index];
        if (parent != none)
            m_ancestor[index] = isTaken(parent) ? parent : m_ancestor[static_cast<std::size_t>(parent)];
        if (m_ancestor[index] == none && at(one).leftOut.empty()) {
            const int root = roots.emplace(at(one).code, one).first->second;
            if (root == one)
                continue;
            m_ancestor[index] = root;
            m_original[index] = root;
            rootCopies.add(firstLine(at(one).id, 40));
            continue;
        }
        const int ancestor = m_ancestor[index];
        if (ancestor == none || !at(one).leftOut.empty() || at(one).code != at(ancestor).code)
            continue;
        m_original[index] = ancestor;
        copies.add(firstLine(at(one).id, 40));
    }
    if (copies.count() > 0)
        m_notes.push_back(
            "Programs that are their parents word for word, as migrants to other islands are, and stand as "
            "those: "
            + copies.text() + '.');
    if (rootCopies.count() > 0)
        m_notes.push_back("Roots that are another root word for word, as each island's first program is, and "
                          "stand as that one: "
                          + rootCopies.text() + '.');
}

std::vector<int> Ancestry::pathTo(int program) const
{
    std::vector<int> path;
    for (int one = originalOf(program); one != none; one = ancestorOf(one))
        path.push_back(one);
    std::reverse(path.begin(), path.end());
    return path;
}

std::vector<int> Ancestry::ranked() const
{
    std::vector<int> taken;
    for (int one = 0; one < static_cast<int>(m_archive.programs.size()); ++one) {
        if (isTaken(one))
            taken.push_back(one);
    }
    std::sort(taken.begin(), taken.end(), [this](int a, int b) { return isBetter(a, b); });
    return taken;
}

} // namespace klineage::interop
