// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/kernelsmith/kernelsmith.h"

#include "core/talk/trialtext.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace klineage::policy {

const SearchOptions &kernelSmithOptions()
{
    static const SearchOptions options = withShared({
        {"evolution_rounds", 40, 1, 100'000, true, "paper", "questions"},
        {"islands", 5, 1, 100, true, "OpenEvolve", "islands; a batch has a question for each"},
        {"bins", 10, 1, 100, true, "OpenEvolve", "of complexity, and of the score"},
        {"population", 1000, 2, 100'000, true, "OpenEvolve", "correct programs that are kept"},
        {"archive", 100, 1, 10'000, true, "OpenEvolve", "best niche holders that exploitation draws from"},
        {"explore", 0.2, 0, 1, false, "OpenEvolve",
         "share of rounds whose parent is any program of the island"},
        {"exploit", 0.7, 0, 1, false, "OpenEvolve",
         "share whose parent comes from the archive; the rest: by score"},
        {"elite", 0.1, 0, 1, false, "OpenEvolve", "share of an island from which the top programs are drawn"},
        {"migration_interval", 50, 1, 100'000, true, "OpenEvolve",
         "generations of an island between migrations"},
        {"migration_rate", 0.1, 0, 1, false, "OpenEvolve", "share of an island that moves to each neighbour"},
        {"top", 3, 0, 20, true, "OpenEvolve", "best programs in the prompt"},
        {"diverse", 2, 0, 20, true, "OpenEvolve", "programs of other niches in the prompt"},
        {"stability_percent", 1, 0, 50, false, "paper",
         "by how much a score has to be larger to take a niche"},
    });
    return options;
}

KernelSmith::KernelSmith(Problem problem, SearchSettings settings)
    : SearchPolicy(std::move(problem), std::move(settings))
{}

Status KernelSmith::rooted()
{
    Result<EvolveBlocks> blocks = EvolveBlocks::of(root().text);
    if (!blocks)
        return tl::unexpected(blocks.error());
    m_blocks = std::move(*blocks);
    m_islands.assign(static_cast<std::size_t>(settings().count("islands")), Island{{0}, 0, {}});
    return {};
}

std::string KernelSmith::problemOf(const std::string &candidate) const
{
    return m_blocks.problemOf(candidate);
}

const std::vector<int> &KernelSmith::members(int island) const
{
    return m_islands[static_cast<std::size_t>(island)].members;
}

std::vector<int> KernelSmith::everybody() const
{
    std::set<int> ids;
    for (const Island &island : m_islands)
        ids.insert(island.members.begin(), island.members.end());
    return {ids.begin(), ids.end()};
}

Grid KernelSmith::grid(int island) const
{
    return Grid::of(population(), members(island), everybody(), settings().count("bins"),
                    settings().number("stability_percent") / 100);
}

std::vector<int> KernelSmith::archive() const
{
    std::set<int> elites;
    for (std::size_t i = 0; i < m_islands.size(); ++i) {
        const Grid here = grid(static_cast<int>(i));
        for (const auto &[cell, id] : here.elites())
            elites.insert(id);
    }
    return population().best({elites.begin(), elites.end()},
                             static_cast<std::size_t>(settings().count("archive")));
}

KernelSmith::Choice KernelSmith::choose(int island)
{
    const std::vector<int> &own = members(island);
    const double draw = draws().uniform();
    if (draw < settings().number("explore"))
        return {own[draws().below(own.size())], "explore"};
    if (draw < settings().number("explore") + settings().number("exploit")) {
        const std::vector<int> best = archive();
        std::vector<int> here; // its own where it has some
        std::copy_if(best.begin(), best.end(), std::back_inserter(here),
                     [&](int id) { return std::find(own.begin(), own.end(), id) != own.end(); });
        const std::vector<int> &from = here.empty() ? best : here;
        return {from[draws().below(from.size())], "exploit"};
    }
    double sum = 0;
    for (const int id : own)
        sum += population().at(id).score;
    double left = draws().uniform() * sum;
    for (const int id : own) {
        left -= population().at(id).score;
        if (left < 0)
            return {id, "by score"};
    }
    return {own.back(), "by score"};
}

/// The best one, then draws from the elite.
std::vector<int> KernelSmith::topOf(int island)
{
    const std::vector<int> &own = members(island);
    const std::size_t wanted = static_cast<std::size_t>(settings().count("top"));
    const auto elite =
        static_cast<std::size_t>(std::ceil(settings().number("elite") * static_cast<double>(own.size())));
    std::vector<int> pool = population().best(own, std::max(wanted, elite));
    std::vector<int> top;
    while (!pool.empty() && top.size() < wanted) {
        const std::size_t at = top.empty() ? 0 : draws().below(pool.size());
        top.push_back(pool[at]);
        pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return population().best(std::move(top), wanted);
}

/// Holders of niches that are not in view yet: of the island, then of the others.
std::vector<int> KernelSmith::diverseOf(int island, int parent, const std::vector<int> &top)
{
    const std::size_t wanted = static_cast<std::size_t>(settings().count("diverse"));
    std::set<int> seen(top.begin(), top.end());
    seen.insert(parent);
    std::vector<int> diverse;
    for (std::size_t i = 0; i < m_islands.size() && diverse.size() < wanted; ++i) {
        const Grid here = grid((island + static_cast<int>(i)) % static_cast<int>(m_islands.size()));
        std::set<Cell> cells;
        for (const int id : seen)
            cells.insert(here.cellOf(population().at(id)));
        std::vector<int> pool;
        for (const auto &[cell, id] : here.elites()) {
            if (cells.count(cell) == 0 && seen.count(id) == 0)
                pool.push_back(id);
        }
        while (!pool.empty() && diverse.size() < wanted) {
            const std::size_t at = draws().below(pool.size());
            diverse.push_back(pool[at]);
            seen.insert(pool[at]);
            pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }
    return diverse;
}

Result<SearchStep> KernelSmith::round(int island)
{
    const Choice choice = choose(island);
    const Cell cell = grid(island).cellOf(population().at(choice.program));
    const int number = ++m_round;
    Island &home = m_islands[static_cast<std::size_t>(island)];
    const std::vector<int> top = topOf(island);
    StepText text;
    text.task = fmt::format("A population of programs evolves. This is round {} of {}, on island {} of {}.",
                            number, settings().count("evolution_rounds"), island + 1, m_islands.size());
    text.top = top;
    text.diverse = diverseOf(island, choice.program, top);
    text.history = home.failure;
    text.asked =
        std::string(
            "Write one program that is faster than the program to change: take what makes others good, or try what "
            "none of them does. Say in one line before the block what you change.")
        + (m_blocks.isWholeFile() ? ""
                                  : " Change only what lies between the lines with EVOLVE-BLOCK-START and "
                                    "EVOLVE-BLOCK-END; keep everything else as it is, these lines too.");
    Result<SearchStep> step = question("evolve",
                                       fmt::format("Round {}, island {}: {}, change {}", number, island + 1,
                                                   choice.how, nameOf(choice.program)),
                                       choice.program, text);
    if (!step)
        return step;
    step->place = island;
    note(fmt::format("round {}: island {}, {}, {} of niche {}/{}", number, island + 1, choice.how,
                     nameOf(choice.program), cell.first, cell.second));
    return step;
}

SearchPolicy::Plan KernelSmith::plan()
{
    const int rounds = settings().count("evolution_rounds");
    if (m_round >= rounds)
        return End{"The " + std::to_string(rounds) + " rounds of evolution are over."};
    Batch batch;
    for (int island = 0; island < settings().count("islands") && m_round < rounds; ++island) {
        Result<SearchStep> step = round(island);
        if (!step)
            return tl::unexpected(step.error());
        batch.push_back(std::move(*step));
    }
    return batch;
}

void KernelSmith::absorb(const Batch &batch)
{
    for (const SearchStep &step : batch) {
        Island &home = m_islands[static_cast<std::size_t>(step.place)];
        const int id = take(step, step.place);
        ++home.generation;
        note(fmt::format("island {}: {}", step.place + 1, resultOf(step, id)));
        if (id >= 0 && population().at(id).isCorrect()) {
            home.members.push_back(id);
            home.failure.clear();
        } else {
            home.failure =
                "The last attempt on this island failed (" + changeOf(step.outcome.reply) + "):\n\n"
                + (id >= 0 ? trialText(population().at(id).tried.trial) : resultOf(step, id) + '\n') + '\n';
        }
    }
    trim();
    int generation = 0;
    for (const Island &island : m_islands)
        generation = std::max(generation, island.generation);
    if (m_islands.size() > 1 && generation - m_migratedAt >= settings().count("migration_interval")) {
        migrate();
        m_migratedAt = generation;
    }
}

/// The best of each island, as they are before anybody moves, go to both neighbours of the ring.
void KernelSmith::migrate()
{
    const std::size_t count = m_islands.size();
    std::vector<std::vector<int>> leaving;
    for (const Island &island : m_islands) {
        const auto most = static_cast<std::size_t>(
            std::ceil(settings().number("migration_rate") * static_cast<double>(island.members.size())));
        leaving.push_back(population().best(island.members, most));
    }
    for (std::size_t from = 0; from < count; ++from) {
        for (const std::size_t to : {(from + 1) % count, (from + count - 1) % count}) {
            std::vector<int> &there = m_islands[to].members;
            for (const int id : leaving[from]) {
                if (std::find(there.begin(), there.end(), id) != there.end())
                    continue;
                there.push_back(id);
                ++m_migrations;
                note(fmt::format("migration: {} from island {} to island {}", nameOf(id), from + 1, to + 1));
            }
        }
    }
}

/// Beyond the limit the worst programs go that hold no niche; the root stays.
void KernelSmith::trim()
{
    const std::vector<int> all = everybody();
    const auto most = static_cast<std::size_t>(settings().count("population"));
    if (all.size() <= most)
        return;
    std::set<int> kept{0};
    for (const int id : archive())
        kept.insert(id);
    const std::vector<int> ranked = population().best(all, all.size());
    std::size_t left = all.size();
    for (auto it = ranked.rbegin(); it != ranked.rend() && left > most; ++it) {
        if (kept.count(*it) > 0)
            continue;
        for (Island &island : m_islands)
            std::erase(island.members, *it);
        note("dropped: " + nameOf(*it));
        --left;
    }
}

} // namespace klineage::policy
