// SPDX-License-Identifier: GPL-3.0-or-later
//
// Few bits of a sum hide where results are rounded to few bits themselves, and every content that is to show them can be told from others by
// who knows it. What cannot be hidden is how far off results are on usual contents, before they are rounded, beside those of the parent.
#pragma once

#include "core/workload/workload.h"

#include <algorithm>
#include <optional>

namespace klineage::gate {

/// How far off results were before they were rounded to their type, in relative L2 (errorBeforeRounding()): the worst that was seen on usual
/// contents of the timed case.
class Precision
{
public:
    void add(double beforeRounding) { m_worst = std::max(m_worst.value_or(0), beforeRounding); }
    /// Nothing: nobody looked.
    [[nodiscard]] const std::optional<double> &worst() const { return m_worst; }

private:
    std::optional<double> m_worst;
};

/// It is as the file has it: nothing was done to it that is hard.
[[nodiscard]] bool isPlain(const workload::Distribution &distribution);

/// Whether results beside this content say how precise they are: it is as the workload draws it, and results are numbers with a point.
[[nodiscard]] bool tellsPrecision(const workload::Workload &workload, const workload::Case &c);

/// What results may be off by, whose parent's are off by `parent`, for a gain over it to be one: eight times as much, or as much as single
/// precision and tensor cores are off by anyhow (2^-15 of 16-bit operands, times what very long sums add; 2^-17 of wider ones; 2^-8 of 8-bit
/// ones), or, where the workload rounds between its steps (Tolerance::roundsBetween), as much as its operands' own type.
[[nodiscard]] double precisionAllowed(const workload::Workload &workload, double parent);

} // namespace klineage::gate
