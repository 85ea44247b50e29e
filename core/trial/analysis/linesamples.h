// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// Half-open range of 1-based lines of a file.
struct LineSpan {
    int first = 1;
    int count = 0;

    friend bool operator==(const LineSpan &, const LineSpan &) = default;
};

/// A reason for which warps waited (the end of a metric's name, "long_scoreboard"), and how many samples found them waiting for it.
struct StallCount {
    std::string reason;
    std::int64_t samples = 0;
};

/// Where the samples of the program counter of one trial fell, by line of the file that it measured. Shares are of all samples of the
/// trial, over all its kernels: those that fell outside of the file, or on lines that the trial does not list, count too.
class LineSamples
{
public:
    LineSamples() = default; ///< of a trial that kept none
    explicit LineSamples(const Trial &trial);

    [[nodiscard]] bool isEmpty() const { return m_total == 0; }
    [[nodiscard]] std::int64_t total() const { return m_total; }
    [[nodiscard]] int kernelCount() const { return m_kernelCount; }

    [[nodiscard]] std::int64_t in(const LineSpan &lines) const; ///< in constant time
    [[nodiscard]] double share(const LineSpan &lines) const;    ///< 0 … 1; 0 where there are no samples
    /// The line with most samples of these, the first of several; 0: no sample fell on any.
    [[nodiscard]] int hottest(const LineSpan &lines) const;
    /// Why warps waited on these lines, most samples first; without "selected": those did not wait.
    [[nodiscard]] std::vector<StallCount> stalls(const LineSpan &lines) const;
    /// Samples on these lines that found a warp issuing.
    [[nodiscard]] std::int64_t issued(const LineSpan &lines) const;

private:
    struct Line {
        std::int64_t samples = 0;
        std::map<std::string, std::int64_t> stalls;
    };

    [[nodiscard]] std::map<std::string, std::int64_t> reasons(const LineSpan &lines) const;

    std::map<int, Line> m_lines;
    std::vector<std::int64_t> m_upTo; ///< samples on lines 0 … i, line 0 left out
    std::int64_t m_total = 0;
    int m_kernelCount = 0;
};

/// What warps wait for, to follow "waited for": "long_scoreboard" -> "global, local or texture memory". A reason that is not known
/// is given as it is.
[[nodiscard]] std::string stallInWords(std::string_view reason);
/// The same in a word or two, for a column: "global memory".
[[nodiscard]] std::string stallInBrief(std::string_view reason);

} // namespace klineage::gate
