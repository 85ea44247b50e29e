// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/tilecheck.h"

#include "core/base/numbertext.h"
#include "core/gate/check/comparison.h"
#include "core/gate/check/parallel.h"

#include <cmath>

namespace klineage::gate {

namespace {

constexpr double deviations = 8;
constexpr double summing = 1e-9; ///< of what adding up in another order may change, with much to spare

/// ‖errors‖ of a whole output that its limit of relative L2 allows.
double wholeError(const workload::Tolerance &tolerance, kernel::DType dtype, std::size_t elements,
                  double squares)
{
    const double slack = tolerance.exact ? 0 : roundingSlack(dtype, elements);
    return (tolerance.relL2 + slack) * std::sqrt(squares);
}

struct Allowed {
    double sum = 0;     ///< of the elements' limits
    double squares = 0; ///< of them
};

void setTolerances(ExpectedTile &tile, const Allowed &allowed, double whole)
{
    const double magnitude = std::sqrt(static_cast<double>(tile.elements) * tile.squares);
    const double error = std::min(std::sqrt(allowed.squares), whole);
    tile.sumTolerance =
        std::min(allowed.sum, std::sqrt(static_cast<double>(tile.elements)) * error) + summing * magnitude;
    tile.projectionTolerance = deviations * error + summing * magnitude;
    tile.normTolerance = error + summing * std::sqrt(tile.squares);
}

bool isNear(double a, double b, double tolerance)
{
    return std::abs(a - b) <= tolerance; // false when one is no number
}

} // namespace

std::vector<ExpectedTile> expectedTiles(const ExpectedView &values, const TileLayout &layout,
                                        const workload::Tolerance &tolerance, std::uint32_t key)
{
    std::vector<ExpectedTile> tiles(layout.tiles());
    std::vector<Allowed> allowed(tiles.size());
    const double absolute = tolerance.atol * rootMeanSquare(values);
    parallelFor(tiles.size(), [&](std::size_t index) {
        ExpectedTile
            tile; // and `limits`: of this thread alone, since neighbours in the vectors share cache lines
        Allowed limits;
        const std::size_t first = index * layout.tileElements;
        tile.elements = std::min(layout.tileElements, layout.elements - first);
        for (std::size_t i = first; i < first + tile.elements; ++i) {
            const double value = values[i];
            if (!std::isfinite(value)) {
                ++tile.nonFinite;
                continue;
            }
            const bool negative = (elementBits(static_cast<std::uint32_t>(i), key) >> 31) != 0;
            const double limit =
                absolute + (tolerance.exact ? unitRoundoff(layout.dtype) : tolerance.rtol) * std::abs(value);
            tile.sum += value;
            tile.projection += negative ? -value : value;
            tile.squares += value * value;
            limits.sum += limit;
            limits.squares += limit * limit;
        }
        tiles[index] = tile;
        allowed[index] = limits;
    });
    double squares = 0;
    for (const ExpectedTile &tile : tiles)
        squares += tile.squares;
    const double whole = tolerance.exact ? std::numeric_limits<double>::infinity()
                                         : wholeError(tolerance, layout.dtype, layout.elements, squares);
    for (std::size_t i = 0; i < tiles.size(); ++i)
        setTolerances(tiles[i], allowed[i], whole);
    return tiles;
}

std::vector<ExpectedTile> tilesLike(std::span<const TilePrint> prints, const TileLayout &layout,
                                    const workload::Tolerance &tolerance, double rms)
{
    std::vector<ExpectedTile> tiles;
    double squares = 0;
    for (const TilePrint &print : prints)
        squares += print.squares;
    const double whole = 2 * wholeError(tolerance, layout.dtype, layout.elements, squares);
    for (std::size_t index = 0; index < prints.size(); ++index) {
        const TilePrint &print = prints[index];
        ExpectedTile tile;
        tile.elements = std::min(layout.tileElements, layout.elements - index * layout.tileElements);
        tile.sum = print.sum;
        tile.projection = print.projection;
        tile.squares = print.squares;
        tile.nonFinite = print.nonFinite;
        const auto count = static_cast<double>(tile.elements);
        const double absolute = tolerance.atol * rms;
        const Allowed allowed{
            2 * (count * absolute + tolerance.rtol * std::sqrt(count * print.squares)),
            8 * (count * absolute * absolute + tolerance.rtol * tolerance.rtol * print.squares)};
        setTolerances(tile, allowed, whole);
        tiles.push_back(tile);
    }
    return tiles;
}

std::optional<TileFault> tileFault(const TilePrint &print, const ExpectedTile &expected, TileRule rule,
                                   kernel::DType dtype)
{
    const std::size_t size = kernel::sizeOf(dtype);
    const bool isFloat = kernel::isFloat(dtype) && size > 1;
    const auto of = [&](std::uint32_t count) {
        return std::to_string(count) + " of its " + std::to_string(expected.elements) + " elements ";
    };
    // A fill word is no finite number in any floating-point type. An integer of a byte or two may be it by chance.
    const std::uint32_t unwritten = isFloat ? std::min(print.unwritten, print.nonFinite) : print.unwritten;
    if (rule == TileRule::Written)
        return unwritten == expected.elements || (unwritten > 0 && size > 2)
                   ? std::optional(TileFault{of(unwritten) + "were not written", unwritten})
                   : std::nullopt;
    if (print.nonFinite != expected.nonFinite) {
        if (unwritten > 0)
            return TileFault{of(unwritten) + "were not written", unwritten};
        return TileFault{of(print.nonFinite) + "are no finite numbers, where "
                             + std::to_string(expected.nonFinite) + " should be none",
                         0};
    }
    if (!isNear(std::sqrt(print.squares), std::sqrt(expected.squares), expected.normTolerance))
        return TileFault{"its root of squares is " + significantText(std::sqrt(print.squares), 6)
                             + " instead of " + significantText(std::sqrt(expected.squares), 6),
                         0};
    if (!isNear(print.sum, expected.sum, expected.sumTolerance))
        return TileFault{"its sum is " + significantText(print.sum, 6) + " instead of "
                             + significantText(expected.sum, 6),
                         0};
    if (rule == TileRule::Full
        && !isNear(print.projection, expected.projection, expected.projectionTolerance))
        return TileFault{"its sum with random signs is " + significantText(print.projection, 6)
                             + " instead of " + significantText(expected.projection, 6),
                         0};
    return std::nullopt;
}

} // namespace klineage::gate
