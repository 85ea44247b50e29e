// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the figures of a trial mean: what bounds it, and one plain sentence from each micro-profiling tool whose trigger fires. For people
// and for prompts alike. Pure.
#pragma once

#include "core/trial/analysis/roof.h"

#include <vector>

namespace klineage::gate {

enum class BoundBy { Unknown, Compute, Memory, Latency, Mixed };
[[nodiscard]] const char *toString(BoundBy bound); ///< "unknown", "compute", "memory", "latency", "mixed"

struct Classification {
    BoundBy bound = BoundBy::Unknown; ///< the analytic side's word; the counters' when there is no other
    BoundBy analytic = BoundBy::Unknown;
    BoundBy counters = BoundBy::Unknown;
    std::string reason; ///< one or two sentences with the figures; says so when the sides differ
};

/// A line of the candidate and how many of the trial's samples it has that a finding is about.
struct FindingLine {
    int line = 0;     ///< 1-based
    double share = 0; ///< of all samples of the trial, 0 … 1
};

struct ToolFinding {
    std::string tool;     ///< stable: "occupancy"
    std::string kernel;   ///< empty: the whole run
    std::string text;     ///< what, the number, the threshold, what it usually means
    std::string metric{}; ///< the figure behind it, a Metric::name; empty: no single one
    /// Where it shows, most samples first, three at most; none where the trial kept no samples, or samples do not show such a thing.
    std::vector<FindingLine> lines{};
};

struct ToolSilence {
    std::string tool;
    std::string why; ///< "needs counters", "the device's ceilings were not measured"
};

struct Analysis {
    Classification classification;
    std::vector<ToolFinding> findings;
    std::vector<ToolSilence> notMeasured; ///< tools that could not look
    double intensity = 0;                 ///< FLOP/B of the workload; 0: not known
    double ridge = 0;                     ///< FLOP/B of the device; 0: not measured
    double bandwidthShare = 0; ///< of the measured bandwidth, by the workload's bytes; 0: not known
    double peakShare = 0;      ///< of the measured rate, by the workload's operations; 0: not known
};

/// Of a trial that was timed, against the ceilings recorded with it.
[[nodiscard]] Analysis analyse(const Trial &trial);
/// Against other ceilings; none: what needs them is not measured.
[[nodiscard]] Analysis analyse(const Trial &trial, const std::optional<Roof> &roof);

/// The names of all tools of a surface, in the order in which they look.
[[nodiscard]] std::vector<std::string> toolNames(kernel::Surface surface);

/// {"class", "reason", "analytic", "counters", "intensity", "ridge", "bandwidth_share", "peak_share", "findings": [{"tool", "kernel",
/// "text", "metric", "lines": [{"line", "share"}]}], "not_measured": [{"tool", "why"}]}; figures that are not known are null.
[[nodiscard]] nlohmann::json analysisJson(const Analysis &analysis);

/// For a prompt or a terminal: the class and its reason, then a line a finding, then one that names the tools that could not look.
[[nodiscard]] std::string analysisText(const Analysis &analysis);

} // namespace klineage::gate
