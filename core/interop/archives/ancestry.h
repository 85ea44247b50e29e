// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/archives/archive.h"

namespace klineage::interop {

/// Who descends from whom in an archive, whatever its ids say: rings are opened, a parent that is not there is none, the first of several programs
/// with one id counts. Keeps the archive by reference. One thread.
class Ancestry
{
public:
    static constexpr int none = -1;

    /// Programs that repeat an id are left out from here on.
    explicit Ancestry(Archive &archive);

    /// The program that the archive calls its best, else the one with the best score among those that are not wrong; none: no program
    /// whose text can be taken has a score.
    [[nodiscard]] int best();
    /// Joins programs that are what they descend from, word for word, with it: migrants to other islands; and roots that are an earlier
    /// root: each island's first program. To be called when it is known which programs are left out, and before what follows.
    void joinCopies();

    /// The nearest ancestor whose text is taken and that is no copy; none: there is no such.
    [[nodiscard]] int ancestorOf(int program) const { return m_ancestor[static_cast<std::size_t>(program)]; }
    /// Itself, or what it is a copy of.
    [[nodiscard]] int originalOf(int program) const { return m_original[static_cast<std::size_t>(program)]; }
    [[nodiscard]] bool isTaken(int program) const;
    /// From the root to the program.
    [[nodiscard]] std::vector<int> pathTo(int program) const;
    /// All that are taken, the best first: correct or not stated before wrong, by score, those without one last, then by age.
    [[nodiscard]] std::vector<int> ranked() const;

    [[nodiscard]] const std::vector<std::string> &notes() const { return m_notes; }

private:
    [[nodiscard]] const ArchivedProgram &at(int program) const;
    void findParents();
    void openRings();
    [[nodiscard]] std::vector<int> parentsFirst() const;
    [[nodiscard]] bool isBetter(int a, int b) const;

    Archive &m_archive;
    std::vector<int> m_parent;
    std::vector<int> m_ancestor;
    std::vector<int> m_original;
    std::vector<std::string> m_notes;
};

} // namespace klineage::interop
