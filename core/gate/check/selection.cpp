// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/selection.h"

#include "core/gate/check/parallel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace klineage::gate {

namespace {

constexpr std::size_t grain = std::size_t{1} << 16;

std::size_t rowGrain(std::size_t length)
{
    return std::max<std::size_t>(1, grain / length);
}

/// Descending, NaN last.
bool above(double a, double b)
{
    if (std::isnan(a) || std::isnan(b))
        return !std::isnan(a) && std::isnan(b);
    return a > b;
}

double rootMeanSquare(std::span<const double> values)
{
    double squares = 0;
    double count = 0;
    for (const double value : values) {
        if (!std::isfinite(value))
            continue;
        squares += value * value;
        ++count;
    }
    return count > 0 ? std::sqrt(squares / count) : 0;
}

std::vector<double> valuesOf(std::span<const std::byte> bytes, kernel::DType dtype, std::size_t count)
{
    std::vector<double> values(count);
    parallelRanges(count, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            values[i] = kernel::loadElement(bytes.data(), dtype, i);
    });
    return values;
}

/// Where each row's elements lie, the largest first; of equal ones the first in memory.
std::vector<std::size_t> descendingOrder(const std::vector<double> &values, std::size_t length)
{
    std::vector<std::size_t> order(values.size());
    parallelRanges(values.size() / length, rowGrain(length), [&](std::size_t begin, std::size_t end) {
        const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin * length);
        const auto last = order.begin() + static_cast<std::ptrdiff_t>(end * length);
        std::iota(first, last, begin * length);
        for (auto row = first; row != last; row += static_cast<std::ptrdiff_t>(length))
            std::stable_sort(row, row + static_cast<std::ptrdiff_t>(length),
                             [&](std::size_t a, std::size_t b) { return above(values[a], values[b]); });
    });
    return order;
}

/// One row of values, descending, against what is expected there. A value that is not among the expected ones takes the place of an
/// expected one that is missing, so that one wrong value does not put all that are smaller in the wrong place.
struct Alignment {
    const std::vector<double> &values;
    std::span<const double> expected; ///< of all rows
    double absolute;
    double relative;

    [[nodiscard]] bool same(double got, double want) const
    {
        return got == want || (std::isnan(got) && std::isnan(want))
               || (std::isfinite(got) && std::isfinite(want)
                   && std::abs(got - want) <= absolute + relative * std::abs(want));
    }
    void align(std::span<std::size_t> order, std::size_t first) const
    {
        const std::vector<std::size_t> descending(order.begin(), order.end());
        std::vector<std::size_t> strangers;
        std::vector<std::size_t> missing;
        std::size_t place = 0;
        for (const std::size_t element : descending) {
            while (place < order.size() && !same(values[element], expected[first + place])
                   && above(expected[first + place], values[element]))
                missing.push_back(place++);
            if (place < order.size() && same(values[element], expected[first + place]))
                order[place++] = element;
            else
                strangers.push_back(element);
        }
        for (; place < order.size(); ++place)
            missing.push_back(place);
        for (std::size_t i = 0; i < missing.size(); ++i)
            order[missing[i]] = strangers[i];
    }
};

std::vector<std::byte> permuted(std::span<const std::byte> bytes, std::size_t size,
                                const std::vector<std::size_t> &order)
{
    std::vector<std::byte> result(bytes.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        std::memcpy(result.data() + i * size, bytes.data() + order[i] * size, size);
    return result;
}

/// The indices of one row against its values and its input.
struct IndexRow {
    std::span<const double> indices;
    std::span<const double> values;
    std::span<const double> in;
    double absolute;
    double relative;

    /// Empty: it is right.
    [[nodiscard]] std::string problem(std::size_t i, std::vector<bool> &taken) const
    {
        const double index = indices[i];
        if (!(index >= 0) || index >= static_cast<double>(in.size()))
            return "which is no column: there are " + std::to_string(in.size());
        const auto column = static_cast<std::size_t>(index);
        if (taken[column])
            return "which its row names already";
        taken[column] = true;
        const double want = in[column];
        const bool near = std::isfinite(want) && std::isfinite(values[i])
                          && std::abs(values[i] - want) <= absolute + relative * std::abs(want);
        if (near || want == values[i] || (std::isnan(want) && std::isnan(values[i])))
            return {};
        return "where the input is " + std::to_string(want) + ", but the value given with it is "
               + std::to_string(values[i]);
    }
};

} // namespace

std::optional<Selection> selectionOf(const workload::Workload &workload)
{
    const bool sorted = workload.oracle == "topk_sorted_rows";
    if (workload.oracle != "topk_rows" && !sorted)
        return std::nullopt;
    const auto named = [&](const char *role) {
        const auto found = workload.oracleArgs.find(role);
        return found == workload.oracleArgs.end() ? std::string() : found->second;
    };
    return Selection{named("in"), named("values"), named("indices"), sorted};
}

Result<Expected> topkOracle(OracleRoles roles)
{
    const HostTensor *indices = OracleRoles(roles)["indices"]; // a copy is asked, because it may be missing
    const HostTensor *in = roles["in"];
    const HostTensor *values = roles["values"];
    if (!in || !values)
        return roles.problem({});
    const std::size_t length = in->rowLength();
    const std::size_t k = values->rowLength();
    auto shape = in->shape;
    shape.back() = values->shape.back();
    if (shape != values->shape || (indices && indices->shape != values->shape))
        return roles.problem("the shapes of its tensors do not fit together");
    if (k >= length)
        return roles.problem("it takes fewer elements than a row has");
    if (indices && (kernel::isFloat(indices->dtype) || indices < values))
        return roles.problem("its indices are whole numbers, and declared after its values");
    const std::vector<double> all = valuesOf(in->bytes, in->dtype, in->elements());
    const std::vector<std::size_t> order = descendingOrder(all, length);
    Expected expected;
    std::vector<double> &chosen = expected[values->name];
    std::vector<double> columns;
    for (std::size_t row = 0; row < all.size() / length; ++row) {
        for (std::size_t i = 0; i < k; ++i) {
            const std::size_t element = order[row * length + i];
            chosen.push_back(all[element]);
            columns.push_back(static_cast<double>(element % length));
        }
    }
    if (indices)
        expected[indices->name] = std::move(columns);
    return expected;
}

OutputCheck compareSelectedValues(std::span<const std::byte> out, kernel::DType dtype, std::size_t rowLength,
                                  std::span<const double> expected, const workload::Tolerance &tolerance,
                                  PoisonImage poison)
{
    const std::size_t size = kernel::sizeOf(dtype);
    const auto values = valuesOf(out, dtype, expected.size());
    auto order = descendingOrder(values, rowLength);
    const Alignment alignment{values, expected, tolerance.atol * rootMeanSquare(expected), tolerance.rtol};
    parallelRanges(values.size() / rowLength, rowGrain(rowLength), [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row)
            alignment.align(std::span(order).subspan(row * rowLength, rowLength), row * rowLength);
    });
    const auto sorted = permuted(out, size, order);
    std::vector<std::byte> before;
    if (!poison.empty())
        before = permuted(poison, size, order);
    OutputCheck check = compareOutput(sorted, dtype, rowLength, expected, tolerance, before);
    if (!check.ok())
        check.index = order[check.index];
    return check;
}

OutputCheck compareSelectedIndices(std::span<const std::byte> out, kernel::DType dtype, std::size_t rowLength,
                                   const SelectedFrom &from, const workload::Tolerance &tolerance,
                                   PoisonImage poison)
{
    const std::size_t columns = from.in.rowLength();
    const std::size_t rows = from.in.elements() / columns;
    const std::size_t size = kernel::sizeOf(dtype);
    const auto indices = valuesOf(out, dtype, rows * rowLength);
    const auto values = valuesOf(from.values, from.valueType, rows * rowLength);
    const auto in = valuesOf(from.in.bytes, from.in.dtype, rows * columns);
    const double rms = rootMeanSquare(from.expected);
    OutputCheck check;
    check.elements = indices.size();
    std::vector<bool> taken;
    for (std::size_t row = 0; row < rows; ++row) {
        taken.assign(columns, false);
        const std::size_t first = row * rowLength;
        const IndexRow judged{
            std::span(indices).subspan(first, rowLength), std::span(values).subspan(first, rowLength),
            std::span(in).subspan(row * columns, columns), tolerance.atol * rms, tolerance.rtol};
        for (std::size_t i = 0; i < rowLength; ++i) {
            auto problem = judged.problem(i, taken);
            if (problem.empty())
                continue;
            if (++check.mismatches == 1) {
                check.failure = OutputCheck::Failure::Selection;
                check.index = first + i;
                check.got = indices[first + i];
                check.why = std::move(problem);
            }
            if (!poison.empty()
                && std::memcmp(poison.data() + (first + i) * size, out.data() + (first + i) * size, size)
                       == 0)
                ++check.unwritten;
        }
    }
    return check;
}

} // namespace klineage::gate
