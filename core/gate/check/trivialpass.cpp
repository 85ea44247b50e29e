// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/trivialpass.h"

#include "core/gate/check/bufferimage.h"
#include "core/gate/check/comparison.h"
#include "core/gate/check/parallel.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

constexpr std::uint64_t fillKey = 1; // any will do: nothing here is hidden from a candidate

/// One output of a case, and what it is compared with.
struct Subject {
    const HostTensor &output;
    ExpectedView expected;
    workload::Tolerance tolerance;
    /// The tolerance for the first elements alone, with the limits that they have among all of them.
    workload::Tolerance atFirst;
    std::size_t first; ///< how many those are; 0: they say nothing by themselves

    Subject(const HostTensor &tensor, ExpectedView values, const workload::Tolerance &limits)
        : output(tensor)
        , expected(values)
        , tolerance(limits)
        , atFirst(limits)
        , first(std::min(values.size(), usualGrain))
    {
        const double ofFirst = rootMeanSquare(values.first(first));
        if (ofFirst > 0)
            atFirst.atol *= rootMeanSquare(values) / ofFirst;
        else
            first = 0;
    }
    [[nodiscard]] bool compared(std::span<const std::byte> content, std::size_t count) const
    {
        if (count == expected.size())
            return compareOutput(content, output.dtype, output.rowLength(), expected, tolerance).ok();
        return compareOutput(content, output.dtype, 0, expected.first(count), atFirst).mismatches == 0;
    }
    /// make(count): the first so many elements. Nearly everything differs among the first ones, which are looked at alone.
    template <typename Make>
    [[nodiscard]] bool accepts(const Make &make) const
    {
        return (first == 0 || compared(make(first), first))
               && compared(make(expected.size()), expected.size());
    }
};

std::vector<std::byte> constant(const Subject &subject, double value, std::size_t count)
{
    std::vector<std::byte> content(count * kernel::sizeOf(subject.output.dtype));
    parallelRanges(count, usualGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            kernel::storeElement(content.data(), subject.output.dtype, i, value);
    });
    return content;
}

std::vector<std::byte> copyOf(const Subject &subject, const HostTensor &input, std::size_t count)
{
    std::vector<std::byte> content(count * kernel::sizeOf(subject.output.dtype));
    if (input.dtype == subject.output.dtype) {
        parallelCopy(content.data(), std::span(input.bytes).first(content.size()));
        return content;
    }
    parallelRanges(count, usualGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            kernel::storeElement(content.data(), subject.output.dtype, i,
                                 kernel::loadElement(input.bytes.data(), input.dtype, i));
    });
    return content;
}

double meanOf(const ExpectedView &values)
{
    const std::size_t pieces = (values.size() + usualGrain - 1) / usualGrain;
    std::vector<std::pair<double, std::size_t>> partial(pieces);
    parallelFor(pieces, [&](std::size_t piece) {
        std::pair<double, std::size_t> mine{0, 0};
        for (std::size_t i = piece * usualGrain; i < std::min(values.size(), (piece + 1) * usualGrain); ++i) {
            if (const double value = values[i]; std::isfinite(value)) {
                mine.first += value;
                ++mine.second;
            }
        }
        partial[piece] = mine;
    });
    double sum = 0;
    std::size_t count = 0;
    for (const auto &[pieceSum, pieceCount] : partial) {
        sum += pieceSum;
        count += pieceCount;
    }
    return count > 0 ? sum / static_cast<double>(count) : 0;
}

bool passesUntouched(const Subject &subject)
{
    const auto left = [&](Fill fill) {
        return subject.accepts([&](std::size_t count) {
            const BufferLayout layout{subject.output.name, BufferKind::Output, subject.output.dtype,
                                      count * kernel::sizeOf(subject.output.dtype)};
            return poison(layout, fillKey, fill);
        });
    };
    return left(Fill::Nan) && left(Fill::Garbage);
}

std::optional<std::string> passOf(const Subject &subject, const std::vector<HostTensor> &tensors)
{
    const double first = subject.expected.empty() ? 0 : subject.expected[0];
    const std::pair<const char *, double> constants[] = {
        {"zeros", 0},
        {"ones", 1},
        {"the mean of the result everywhere", meanOf(subject.expected)},
        {"its first element everywhere", std::isfinite(first) ? first : 0},
    };
    for (const auto &[name, value] : constants) {
        if (subject.accepts(
                [&, value = value](std::size_t count) { return constant(subject, value, count); }))
            return name;
    }
    for (const HostTensor &input : tensors) {
        if (input.role == workload::Role::Input && input.elements() == subject.output.elements()
            && subject.accepts([&](std::size_t count) { return copyOf(subject, input, count); }))
            return "a copy of " + input.name;
    }
    if (passesUntouched(subject))
        return "what was there before";
    return std::nullopt;
}

} // namespace

std::optional<std::string> trivialPass(const std::vector<HostTensor> &tensors,
                                       const ExpectedOutputs &expected, const workload::Tolerance &tolerance)
{
    std::string passes;
    for (const HostTensor &tensor : tensors) {
        if (tensor.role != workload::Role::Output)
            continue;
        const auto pass = passOf(Subject(tensor, expected.at(tensor.name), tolerance), tensors);
        if (!pass)
            return std::nullopt;
        passes += (passes.empty() ? "" : ", ") + tensor.name + " passes as " + *pass;
    }
    return passes;
}

Error trivialError(const std::string &workload, const std::string &caseName, const std::string &pass)
{
    return {ErrorCode::InvalidInput,
            "Cannot gate with the workload " + workload + ": in its case " + caseName + " " + pass
                + ", which takes no work. Fill its inputs otherwise, or tighten its tolerance.",
            {}};
}

} // namespace klineage::gate
