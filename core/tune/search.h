// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/tune/space.h"

#include <memory>
#include <optional>

namespace klineage::gate::tune {

/// Decides which points of a space get a trial. Its choices follow from the space, the seed and what it is told, so that a sweep can be
/// replayed. One thread.
class Search
{
public:
    virtual ~Search() = default;
    Search(const Search &) = delete;
    Search &operator=(const Search &) = delete;

    [[nodiscard]] virtual const char *name() const = 0;
    /// Points worth a trial, in this order and independent of each other (so that they may be compiled ahead); none is handed out
    /// twice. Empty: nothing is left. To be called when every point of the last call has been told.
    [[nodiscard]] virtual std::vector<Coordinates> next() = 0;
    /// speed: how fast it is, greater is faster; nothing when it was refused. Points that were not handed out may be told too.
    virtual void tell(const Coordinates &coordinates, std::optional<double> speed) = 0;

protected:
    Search() = default;
};

/// Every point, in an order drawn from the seed: a sweep that is cut short has still seen all axes alike.
[[nodiscard]] std::unique_ptr<Search> exhaustiveSearch(const Space &space, std::uint64_t seed);

/// Iterated local search (Lourenço, Martin, Stützle: "Iterated Local Search", in Handbook of Metaheuristics, 2003). From the defaults,
/// which their author chose for a reason, it tries the other values of one tunable after another (at most `lineLimit`, the nearest) and
/// moves to the fastest when that gains more than `leastGain`; when no tunable gains, it starts again from the fastest point so far with
/// some tunables drawn anew. Trials under the gate cost seconds, so few of them are made, and tuning spaces are discrete and not convex,
/// with cliffs where a resource runs out (Schoonhoven, van Werkhoven, Batenburg: "Benchmarking optimization algorithms for auto-tuning
/// GPU kernels", IEEE Transactions on Evolutionary Computation, 2022): methods that fit a model or keep a population have little to work
/// with, descent along one tunable at a time is what a person would do, and drawing anew is the way out of a local optimum.
[[nodiscard]] std::unique_ptr<Search> localSearch(const Space &space, std::uint64_t seed);

inline constexpr std::size_t lineLimit = 8;
inline constexpr double leastGain = 1.003; ///< what the gate would not call a gain is no reason to move

/// The exhaustive search when the space has at most `budget` points, the local one otherwise.
[[nodiscard]] std::unique_ptr<Search> chooseSearch(const Space &space, std::uint64_t budget,
                                                   std::uint64_t seed);

} // namespace klineage::gate::tune
