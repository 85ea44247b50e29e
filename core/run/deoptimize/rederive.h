// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/activerun.h"
#include "core/run/deoptimize/proposal.h"
#include "core/run/deoptimize/walk.h"

namespace klineage::run {

/// What is asked: to come forward again from a simpler kernel. The stronger kernel's text is for the gate; no prompt holds it.
struct Rederivation {
    std::string simpler;
    std::string stronger;
    std::string category;
    std::string locus;
    std::string workload; ///< workload.toml
    std::string platform;
    int repairs = 2;      ///< further tries, with the verdict of the last one
    double within = 0.03; ///< how much longer than the stronger kernel it may take
};

struct Rederived {
    bool accepted = false;
    std::string reason; ///< why not, of the last try
    std::string text;
    gate::Trial trial;                                       ///< against the simpler kernel
    gate::Trial match;                                       ///< against the stronger one, in the same rounds
    std::vector<std::pair<gate::Trial, std::string>> trials; ///< all that were made, with their candidates
};

/// Asks in a conversation of its own. Writes one step a try.
[[nodiscard]] Result<Rederived> rederive(ActiveRun &run, const Rederivation &wanted);

/// Whether the trial's candidate takes at most (1 + within) times as long as its parent, by an interval narrow enough to tell; faster is
/// fine.
[[nodiscard]] bool matchesParent(const gate::Trial &trial, double within);

} // namespace klineage::run
