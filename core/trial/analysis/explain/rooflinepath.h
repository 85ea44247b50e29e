// SPDX-License-Identifier: GPL-3.0-or-later
//
// A chain of states under the device's ceilings: operations a byte against operations a second. Pure.
#pragma once

#include "core/trial/trial.h"

#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// What stands for the bytes of a run.
enum class RooflineBytes {
    Counted, ///< what hardware counters saw device memory move: differs from state to state
    Least,   ///< the fewest that the workload needs: the same for all states
};
[[nodiscard]] const char *toString(RooflineBytes bytes); ///< counted least

struct RooflinePoint {
    std::string id;       ///< "K03"
    double intensity = 0; ///< FLOP/B, by the bytes of the path
    double perSecond = 0; ///< FLOP/s of the workload's operations, at the median latency
    double latencyNs = 0;
};

/// A ceiling: of bytes (a slope) or of operations (a level).
struct RooflineCeiling {
    std::string name;     ///< "copy", "bf16", "fp32"
    double perSecond = 0; ///< B/s or FLOP/s
    bool isBandwidth = false;
    std::string source; ///< "measured on 2026-11-21 over 314.6 MB"
};

struct RooflinePath {
    std::vector<RooflinePoint> points; ///< of the states that were timed, in the order of the chain
    RooflineBytes bytes = RooflineBytes::Least;
    std::vector<RooflineCeiling> ceilings; ///< bandwidth first, then rates, highest first
    std::string ceilingsOf;                ///< the state whose trial has recorded them
    std::string device;
    std::vector<std::string> notices; ///< what is left out, and why: whole sentences
    std::string missing;              ///< why there is no picture: whole sentences; empty when there is one
};

/// A sentence with both of a trial's intensities, as a roofline may draw another one than its findings speak of; empty without counted bytes.
[[nodiscard]] std::string bothIntensities(const Trial &trial);

/// The roof over an intensity.
struct RoofAbove {
    const RooflineCeiling *ceiling = nullptr; ///< of the path; nullptr: none was measured
    double most = 0;                          ///< FLOP/s that it allows there
};
/// The lower one of the steepest slope and the highest level.
[[nodiscard]] RoofAbove roofAbove(const RooflinePath &path, double intensity);

struct ChainedTrial {
    std::string id;
    const Trial *trial = nullptr; ///< nullptr: none was recorded
};

/// Ceilings are those recorded with the selected state's trial, else with the last one that has any. Counted bytes are taken when all of the
/// points have them: points of both kinds would make a path that nobody went. States on another device than the ceilings' are left out.
[[nodiscard]] RooflinePath rooflinePath(const std::vector<ChainedTrial> &chain, std::string_view selected);

} // namespace klineage::gate
