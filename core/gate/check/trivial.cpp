// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/trivial.h"

#include "core/gate/check/bufferimage.h"
#include "core/gate/check/comparison.h"
#include "core/gate/check/parallel.h"

#include <cmath>

namespace klineage::gate {

namespace {

constexpr std::uint64_t fillKey = 1; // any will do: nothing here is hidden from a candidate

/// One output of a case, and what it is compared with.
struct Subject {
    const HostTensor &output;
    ExpectedView expected;
    const workload::Tolerance &tolerance;

    [[nodiscard]] std::size_t bytes() const { return output.elements() * kernel::sizeOf(output.dtype); }
    [[nodiscard]] bool accepts(std::span<const std::byte> content) const
    {
        return compareOutput(content, output.dtype, output.rowLength(), expected, tolerance).ok();
    }
};

std::vector<std::byte> constant(const Subject &subject, double value)
{
    std::vector<std::byte> content(subject.bytes());
    parallelRanges(subject.output.elements(), usualGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            kernel::storeElement(content.data(), subject.output.dtype, i, value);
    });
    return content;
}

std::vector<std::byte> copyOf(const Subject &subject, const HostTensor &input)
{
    if (input.dtype == subject.output.dtype)
        return input.bytes;
    std::vector<std::byte> content(subject.bytes());
    parallelRanges(subject.output.elements(), usualGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            kernel::storeElement(content.data(), subject.output.dtype, i,
                                 kernel::loadElement(input.bytes.data(), input.dtype, i));
    });
    return content;
}

double meanOf(const ExpectedView &values)
{
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (const double value = values[i]; std::isfinite(value)) {
            sum += value;
            ++count;
        }
    }
    return count > 0 ? sum / static_cast<double>(count) : 0;
}

bool passesUntouched(const Subject &subject)
{
    const BufferLayout layout{subject.output.name, BufferKind::Output, subject.output.dtype, subject.bytes()};
    return subject.accepts(poison(layout, fillKey, Fill::Nan))
           && subject.accepts(poison(layout, fillKey, Fill::Garbage));
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
        if (subject.accepts(constant(subject, value)))
            return name;
    }
    for (const HostTensor &input : tensors) {
        if (input.role == workload::Role::Input && input.elements() == subject.output.elements()
            && subject.accepts(copyOf(subject, input)))
            return "a copy of " + input.name;
    }
    if (passesUntouched(subject))
        return "what was there before";
    return std::nullopt;
}

} // namespace

std::optional<std::string> trivialPass(const std::vector<HostTensor> &tensors,
                                       const ExpectedOutputs &expected,
                                       const workload::Tolerance &tolerance)
{
    std::string passes;
    for (const HostTensor &tensor : tensors) {
        if (tensor.role != workload::Role::Output)
            continue;
        const auto pass = passOf({tensor, expected.at(tensor.name), tolerance}, tensors);
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
