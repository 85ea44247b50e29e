// SPDX-License-Identifier: GPL-3.0-or-later
//
// Few bits of a sum hide where results are rounded to few bits themselves, and every content that is to show them can be told from others by
// who knows it. What cannot be hidden is how far off results are on usual contents, before they are rounded, beside those of the parent.
#pragma once

#include "core/workload/workload.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>

namespace klineage::gate {

/// How far off results were before they were rounded to their type, in relative L2, on usual contents of the timed case: row by row (their root
/// mean square), since few large rows hide what all others lose; but where they are compared on the device, all together
/// (errorBeforeRounding()).
class Precision
{
public:
    void add(const std::string &output, double beforeRounding)
    {
        Looks &looks = m_outputs[output];
        looks.squares += beforeRounding * beforeRounding;
        ++looks.count;
    }
    void add(const Precision &other)
    {
        for (const auto &[output, looks] : other.m_outputs) {
            m_outputs[output].squares += looks.squares;
            m_outputs[output].count += looks.count;
        }
    }
    /// Over all looks, by output: a single one says little of few results.
    [[nodiscard]] std::map<std::string, double> rootMeanSquares() const
    {
        std::map<std::string, double> means;
        for (const auto &[output, looks] : m_outputs)
            means[output] = std::sqrt(looks.squares / static_cast<double>(looks.count));
        return means;
    }

private:
    struct Looks {
        double squares = 0;
        std::size_t count = 0;
    };
    std::map<std::string, Looks> m_outputs;
};

/// It is as the file has it: nothing was done to it that is hard.
[[nodiscard]] bool isPlain(const workload::Distribution &distribution);

/// Whether results beside this content say how precise they are: it is as the workload draws it.
[[nodiscard]] bool tellsPrecision(const workload::Workload &workload, const workload::Case &c);

/// What an output may be off by, whose parent's is off by `parent`, for a gain over it to be one: twice as much, or as much as its type and
/// the units that compute it are off by anyhow. That is 2^-42 of f64; sixteen times the parent's or 2^-18 of others (but no more than 2^-17 of f32
/// and 2^-15 of what is rounded to fewer bits); 2^-15 of products of 16-bit operands (times what very long sums add), 2^-8 of products of 8-bit ones;
/// and where the workload rounds between its steps (Tolerance::roundsBetween), as much as its narrowest operand's type. Few elements are
/// allowed more: see fewElements().
[[nodiscard]] double precisionAllowed(const workload::Workload &workload, const workload::Tensor &output,
                                      std::size_t elements, double parent);

/// What limits of errors before rounding are multiplied by: of few results a single one that is rounded to the other side is much.
[[nodiscard]] inline double fewElements(std::size_t elements)
{
    constexpr double enough = 4096;
    return std::sqrt(std::max(1.0, enough / static_cast<double>(std::max<std::size_t>(1, elements))));
}

} // namespace klineage::gate
