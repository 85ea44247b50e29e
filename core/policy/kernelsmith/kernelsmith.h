// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/kernelsmith/grid.h"
#include "core/policy/search/evolveblocks.h"
#include "core/policy/search/searchpolicy.h"

namespace klineage::policy {

[[nodiscard]] const SearchOptions &kernelSmithOptions();

/// Evolution after Kernel-Smith: islands that each keep the best program of every niche (code complexity, overall score). A round asks for
/// one change, of a program that is drawn from its island (explore), from the archive of the best (exploit), or by score; the best
/// programs, programs of other niches and the island's last failure are in view. The best of each island move to its two neighbours
/// now and then. Where the root has evolve blocks only they may be changed. A batch is a round of each island.
class KernelSmith : public SearchPolicy
{
public:
    KernelSmith(Problem problem, SearchSettings settings);

    [[nodiscard]] std::string problemOf(const std::string &candidate) const override;

    /// Correct programs of an island, in the order in which they came.
    [[nodiscard]] const std::vector<int> &members(int island) const;
    [[nodiscard]] Grid grid(int island) const;
    [[nodiscard]] int migrations() const { return m_migrations; }

private:
    [[nodiscard]] Status rooted() override;
    [[nodiscard]] Plan plan() override;
    void absorb(const Batch &batch) override;

    struct Choice {
        int program = 0;
        const char *how = "";
    };
    [[nodiscard]] Choice choose(int island);
    [[nodiscard]] std::vector<int> topOf(int island);
    [[nodiscard]] std::vector<int> diverseOf(int island, int parent, const std::vector<int> &top);
    [[nodiscard]] Result<SearchStep> round(int island);
    [[nodiscard]] std::vector<int> everybody() const;
    [[nodiscard]] std::vector<int> archive() const;
    void migrate();
    void trim();

    struct Island {
        std::vector<int> members;
        int generation = 0;
        std::string failure; ///< what went wrong last, for the next prompt
    };
    EvolveBlocks m_blocks;
    std::vector<Island> m_islands;
    int m_round = 0;
    int m_migratedAt = 0; ///< generation
    int m_migrations = 0;
};

} // namespace klineage::policy
