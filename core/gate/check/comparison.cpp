// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/comparison.h"

#include "core/gate/check/parallel.h"
#include "core/gate/check/precision.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace klineage::gate {

namespace {

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
// Of a double. Of every element it is asked how large it is, and the library's own answer takes ten times as long.
constexpr int fractionBits = 52;
constexpr std::uint64_t exponentMask = 0x7ff;
constexpr int bias = 1023;

struct Bits {
    int fraction = 0;
    int leastExponent = 0;
};

Bits bitsOf(kernel::DType dtype)
{
    switch (dtype) {
    case kernel::DType::BF16:
        return {7, -126};
    case kernel::DType::F16:
        return {10, -14};
    case kernel::DType::F8E4M3:
        return {3, -6};
    case kernel::DType::F8E5M2:
        return {2, -14};
    default:
        return {23, -126};
    }
}

/// What one piece of the output contributes.
struct Partial {
    double errorSquares = 0;
    double expectedSquares = 0;
    double unroundedSquares = 0;
    double largestError = 0;
    std::size_t finite = 0;
    std::size_t mismatches = 0;
    std::size_t unwritten = 0;
    std::size_t first = none;

    void add(const Partial &other)
    {
        errorSquares += other.errorSquares;
        expectedSquares += other.expectedSquares;
        unroundedSquares += other.unroundedSquares;
        largestError = std::max(largestError, other.largestError);
        mismatches += other.mismatches;
        unwritten += other.unwritten;
        first = std::min(first, other.first);
    }
};

double load(const std::byte *data, kernel::DType dtype, std::size_t index)
{
    if (dtype == kernel::DType::F32 || dtype == kernel::DType::TF32) {
        float value = 0;
        std::memcpy(&value, data + index * sizeof value, sizeof value);
        return value;
    }
    if (dtype == kernel::DType::F16) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, data + index * sizeof bits, sizeof bits);
        return kernel::f16ToFloat(bits);
    }
    if (dtype == kernel::DType::BF16) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, data + index * sizeof bits, sizeof bits);
        return kernel::bf16ToFloat(bits);
    }
    return kernel::loadElement(data, dtype, index);
}

double rounded(double value, kernel::DType dtype)
{
    std::byte element[sizeof(double)] = {};
    kernel::storeElement(element, dtype, 0, value);
    return kernel::loadElement(element, dtype, 0);
}

bool sameSpecial(double a, double b)
{
    return (std::isnan(a) && std::isnan(b)) || a == b;
}

/// Everything that one element's comparison needs.
struct Comparer {
    std::span<const std::byte> out;
    kernel::DType dtype;
    ExpectedView expected;
    double absolute; ///< atol · RMS
    double relative;
    PoisonImage poison;
    bool exact = false;     ///< expected values are rounded to the type first
    bool unrounded = false; ///< errors before rounding are wanted

    void add(std::size_t i, Partial &partial) const
    {
        const double want = exact ? rounded(expected[i], dtype) : expected[i];
        const double got = load(out.data(), dtype, i);
        bool ok = false;
        if (std::isfinite(want) && std::isfinite(got)) {
            const double error = got - want;
            partial.errorSquares += error * error;
            partial.expectedSquares += want * want;
            if (unrounded)
                partial.unroundedSquares += squareBeforeRounding(got, want, dtype);
            partial.largestError = std::max(partial.largestError, std::abs(error));
            ok = std::abs(error) <= absolute + relative * std::abs(want);
        } else {
            ok = sameSpecial(want, got);
            if (!ok)
                partial.largestError = std::numeric_limits<double>::infinity();
        }
        if (ok)
            return;
        ++partial.mismatches;
        partial.first = std::min(partial.first, i);
        const std::size_t size = kernel::sizeOf(dtype);
        if (!poison.empty() && std::memcmp(poison.data() + i * size, out.data() + i * size, size) == 0)
            ++partial.unwritten;
    }
};

Partial compareRange(const Comparer &comparer, std::size_t begin, std::size_t end)
{
    Partial mine;
    for (std::size_t i = begin; i < end; ++i)
        comparer.add(i, mine);
    return mine;
}

Partial compareAll(const Comparer &comparer)
{
    const std::size_t count = comparer.expected.size();
    std::vector<Partial> partials((count + usualGrain - 1) / usualGrain);
    parallelRanges(count, usualGrain, [&](std::size_t begin, std::size_t end) {
        partials[begin / usualGrain] = compareRange(comparer, begin, end);
    });
    Partial total;
    for (const Partial &partial : partials)
        total.add(partial);
    return total;
}

/// Row by row; short rows some at a time.
std::vector<Partial> compareRows(const Comparer &comparer, std::size_t rowLength)
{
    constexpr std::size_t enough = 32;
    const std::size_t length = (enough + rowLength - 1) / rowLength * rowLength;
    const std::size_t count = comparer.expected.size();
    std::vector<Partial> rows((count + length - 1) / length);
    parallelRanges(
        rows.size(), std::max<std::size_t>(1, usualGrain / length), [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row)
                rows[row] = compareRange(comparer, row * length, std::min(count, (row + 1) * length));
        });
    return rows;
}

/// The root mean square of what rows are off by, each beside what was expected of it. Of what is next to nothing beside the others rounding says
/// nothing.
double rowsBeforeRounding(const std::vector<Partial> &rows, double expectedSquares)
{
    constexpr double nextToNothing = 1e-9; // of the squares, so 2^-15 of the values
    const double least = nextToNothing * expectedSquares / static_cast<double>(rows.size());
    double sum = 0;
    std::size_t count = 0;
    for (const Partial &row : rows) {
        if (row.expectedSquares <= least)
            continue;
        sum += row.unroundedSquares / row.expectedSquares;
        ++count;
    }
    return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

void checkRowSums(const Comparer &comparer, std::size_t rowLength, double limit, OutputCheck &check)
{
    for (std::size_t row = 0; row < comparer.expected.size() / rowLength; ++row) {
        double sum = 0;
        for (std::size_t i = 0; i < rowLength; ++i)
            sum += load(comparer.out.data(), comparer.dtype, row * rowLength + i);
        if (std::abs(sum - 1.0) <= limit)
            continue;
        check.failure = OutputCheck::Failure::RowSum;
        check.index = row * rowLength;
        check.expected = 1.0;
        check.got = sum;
        return;
    }
}

} // namespace

double relativeError(const ComparisonTotals &totals)
{
    // What is not finite where it should be has no place in the sums, and they alone would call it right.
    if (std::isinf(totals.largestError))
        return totals.largestError;
    if (totals.expectedSquares > 0)
        return std::sqrt(totals.errorSquares / totals.expectedSquares);
    return totals.errorSquares > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

double errorBeforeRounding(const ComparisonTotals &totals)
{
    return totals.expectedSquares > 0 ? std::sqrt(totals.unroundedSquares / totals.expectedSquares) : 0;
}

double squareBeforeRounding(double got, double want, kernel::DType dtype)
{
    if (dtype == kernel::DType::F64)
        return (got - want) * (got - want); // what was computed to tell is no nearer
    double distance = 1;
    if (kernel::isFloat(dtype)) {
        const Bits bits = bitsOf(dtype);
        const auto exponentOf = [](double value) {
            return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> fractionBits & exponentMask)
                   - bias;
        };
        const int exponent = std::max(exponentOf(want), bits.leastExponent) - bits.fraction;
        distance = std::bit_cast<double>(static_cast<std::uint64_t>(exponent + bias) << fractionBits);
    }
    const double excess = std::max(0.0, std::abs(got - want) - distance / 2);
    return excess * std::max(2 * distance, excess);
}

bool holds(const ComparisonTotals &totals, kernel::DType dtype, std::size_t elements,
           const workload::Tolerance &tolerance)
{
    const double slack = tolerance.exact ? 0 : roundingSlack(dtype, elements);
    return totals.mismatches == 0 && relativeError(totals) <= tolerance.relL2 + slack
           && (tolerance.beforeRounding == 0
               || errorBeforeRounding(totals) <= tolerance.beforeRounding * fewElements(elements));
}

double unitRoundoff(kernel::DType dtype)
{
    return dtype == kernel::DType::BF16 ? 0x1p-8 : dtype == kernel::DType::F16 ? 0x1p-11 : 0x1p-24;
}

double roundingSlack(kernel::DType dtype, std::size_t elements)
{
    return kernel::isFloat(dtype) ? unitRoundoff(dtype) / std::sqrt(static_cast<double>(elements)) : 0;
}

double rootMeanSquare(const ExpectedView &values)
{
    const std::size_t pieces = (values.size() + usualGrain - 1) / usualGrain;
    std::vector<Partial> partials(pieces);
    parallelFor(pieces, [&](std::size_t piece) {
        Partial mine;
        for (std::size_t i = piece * usualGrain; i < std::min(values.size(), (piece + 1) * usualGrain); ++i) {
            const double value = values[i];
            if (!std::isfinite(value))
                continue;
            mine.expectedSquares += value * value;
            ++mine.finite;
        }
        partials[piece] = mine;
    });
    double squares = 0;
    double count = 0;
    for (const Partial &partial : partials) {
        squares += partial.expectedSquares;
        count += static_cast<double>(partial.finite);
    }
    return count > 0 ? std::sqrt(squares / count) : 0;
}

OutputCheck compareOutput(std::span<const std::byte> out, kernel::DType dtype, std::size_t rowLength,
                          ExpectedView expected, const workload::Tolerance &tolerance, PoisonImage poison)
{
    OutputCheck check;
    check.elements = expected.size();
    check.rms = rootMeanSquare(expected);
    const Comparer comparer{out,
                            dtype,
                            expected,
                            tolerance.atol * check.rms,
                            tolerance.rtol,
                            poison,
                            tolerance.exact,
                            tolerance.beforeRounding > 0};
    std::vector<Partial> rows;
    Partial total;
    if (comparer.unrounded && rowLength > 0) {
        rows = compareRows(comparer, rowLength);
        for (const Partial &row : rows)
            total.add(row);
    } else {
        total = compareAll(comparer);
    }
    check.mismatches = total.mismatches;
    check.unwritten = total.unwritten;
    const ComparisonTotals totals{total.errorSquares, total.expectedSquares, total.unroundedSquares,
                                  total.largestError, total.mismatches,      total.first};
    check.relativeL2 = relativeError(totals);
    check.beforeRounding = errorBeforeRounding(totals);
    check.rowsBeforeRounding = check.beforeRounding;
    if (!rows.empty())
        check.rowsBeforeRounding =
            std::max(check.beforeRounding, rowsBeforeRounding(rows, total.expectedSquares));
    check.largestError = check.rms > 0 ? total.largestError / check.rms : total.largestError;
    if (total.mismatches > 0) {
        check.failure = OutputCheck::Failure::Element;
        check.index = total.first;
        check.expected = tolerance.exact ? rounded(expected[total.first], dtype) : expected[total.first];
        check.got = load(out.data(), dtype, total.first);
    } else if (!holds(totals, dtype, check.elements, tolerance)) {
        check.failure = OutputCheck::Failure::RelativeL2;
        if (check.relativeL2 <= tolerance.relL2 + roundingSlack(dtype, check.elements))
            check.failure = OutputCheck::Failure::BeforeRounding;
    } else if (tolerance.rowSum > 0 && rowLength > 0) {
        checkRowSums(comparer, rowLength, tolerance.rowSum, check);
    }
    return check;
}

std::string elementName(const std::string &tensor, const std::vector<std::int64_t> &shape, std::size_t index)
{
    std::string inside;
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
        const auto size = static_cast<std::size_t>(*extent);
        const std::string separator = inside.empty() ? "" : ", ";
        inside = std::to_string(index % size) + separator + inside;
        index /= size;
    }
    return tensor + "[" + inside + "]";
}

} // namespace klineage::gate
