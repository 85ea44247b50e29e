// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/expected.h"
#include "core/gate/check/inputs.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace klineage::gate {

/// What an output element was before the launch, so that an element that was never written can be told. Empty: not known.
using PoisonImage = std::span<const std::byte>;

/// The outcome of comparing one output with the oracle; every element was looked at.
struct OutputCheck {
    enum class Failure { None, Element, RelativeL2, BeforeRounding, RowSum, Selection };
    Failure failure = Failure::None;
    double relativeL2 = 0;     ///< ‖out − oracle‖₂ / ‖oracle‖₂; infinite when an error is
    double beforeRounding = 0; ///< the same as it was before results were rounded
    double rowsBeforeRounding =
        0;          ///< the same again, told row by row, or all together where that is more: see Precision
    double rms = 0; ///< of the oracle's finite elements
    std::size_t elements = 0;
    std::size_t mismatches = 0; ///< elements outside the tolerance
    std::size_t unwritten = 0;  ///< mismatches that still hold the poison
    std::size_t index = 0;      ///< first mismatch, or first element of the failing row
    double expected = 0;        ///< there (of a row: 1)
    double got = 0;             ///< there (of a row: its sum)
    double largestError =
        0; ///< |out − oracle| at its worst, in units of the RMS; infinite when one side is not finite
    std::string why; ///< Selection: what is wrong with `got`, a clause that begins with "which" or "where"

    [[nodiscard]] bool ok() const { return failure == Failure::None; }
};

/// All metrics of the tolerance must hold: relative L2 (plus the type's unit roundoff over √elements: rounding does not average
/// out in tiny outputs), and for each element |out − oracle| ≤ atol·RMS + rtol·|oracle|. NaN is
/// expected only where the oracle is NaN, an infinity only the oracle's own. An exact tolerance takes nothing but the oracle rounded
/// to the type. Multi-threaded.
[[nodiscard]] OutputCheck compareOutput(std::span<const std::byte> out, kernel::DType dtype,
                                        std::size_t rowLength, ExpectedView expected,
                                        const workload::Tolerance &tolerance, PoisonImage poison = {});

/// What the elements of an output come to, whoever added them up.
struct ComparisonTotals {
    double errorSquares = 0; ///< of what is finite on both sides
    double expectedSquares = 0;
    double unroundedSquares = 0; ///< of the errors before results were rounded: see squareBeforeRounding()
    double largestError = 0;
    std::size_t mismatches = 0;
    std::size_t first = 0; ///< mismatch
};
/// ‖errors‖ / ‖expected‖; infinite when nothing was expected and something came, and when the largest error is.
[[nodiscard]] double relativeError(const ComparisonTotals &totals);
/// The same of the errors before results were rounded.
[[nodiscard]] double errorBeforeRounding(const ComparisonTotals &totals);
/// What one element adds to the squares of the errors that results had before they were rounded to nearest. A result that was off by δ is rounded to
/// another number than the right one as often as |δ| to their distance u, and is then up to |δ| further off than rounding explains; so that of
/// many, (u + u) times what rounding does not explain is δ² on average (below a distance). Few bits of a sum show in it that rounding hides.
[[nodiscard]] double squareBeforeRounding(double got, double want, kernel::DType dtype);
/// Whether all metrics hold; sums of rows, where there is a tolerance for them, are not among them.
[[nodiscard]] bool holds(const ComparisonTotals &totals, kernel::DType dtype, std::size_t elements,
                         const workload::Tolerance &tolerance);

/// Half the distance from 1 to the next number of the type, of integers too (2^-24).
[[nodiscard]] double unitRoundoff(kernel::DType dtype);
/// What rounding a right result to the output's type can do to the relative L2 error of so few elements that its errors do not
/// average out: the unit roundoff over √n. It is far below every limit from a few thousand elements on. 0 for integers.
[[nodiscard]] double roundingSlack(kernel::DType dtype, std::size_t elements);

/// Of the finite ones; 0 when there are none. Multi-threaded.
[[nodiscard]] double rootMeanSquare(const ExpectedView &values);

/// "c[3, 17]".
[[nodiscard]] std::string elementName(const std::string &tensor, const std::vector<std::int64_t> &shape,
                                      std::size_t index);

} // namespace klineage::gate
