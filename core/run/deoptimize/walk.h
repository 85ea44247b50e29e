// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/subject.h"
#include "core/trial/trial.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace klineage::run {

/// The walk backward as far as it has come. Indices count backward: 0 is K*.
struct Walk {
    struct State {
        std::string text;
        std::string title;
        gate::Trial
            trial; ///< against the next simpler state once there is one; until then against the state it was made from
    };
    /// From states[i + 1] forward to states[i].
    struct Step {
        std::string category;
        std::string locus;
        std::string summary;
        std::string rederived; ///< the text derived on states[i + 1] alone
        gate::Trial rederivedTrial;
        gate::Trial rederivedMatch;
    };
    /// A simplification that was not kept.
    struct Attempt {
        std::size_t parent = 0;
        std::string text;
        std::string title;
        std::string category;
        std::string locus;
        std::string reason;
        gate::Trial trial;
    };
    /// A simplification that came to no trial: for the history in prompts only.
    struct Refusal {
        std::size_t parent = 0;
        std::string category;
        std::string locus;
        std::string reason;
    };

    std::vector<State> states;
    std::vector<Step> steps; ///< one fewer than states
    std::vector<Attempt> attempts;
    std::vector<Refusal> refusals;            ///< attempts included
    std::vector<gate::Trial> trials;          ///< all, in the order in which they were made
    std::map<std::string, std::string> texts; ///< of all gated candidates, by sha-256
    std::string termination = "unknown";
    std::string reason;

    [[nodiscard]] const State &current() const { return states.back(); }
};

/// Where a walk's lineage goes and what its head says.
struct WalkHead {
    std::string workload;
    std::string platform;
    std::string name;
    kernel::Surface surface = kernel::Surface::OpenCl;
    std::string title;
    std::string origin;
    std::string run;
    std::filesystem::path runDirectory; ///< where the listings of its trials stand
};

/// To be asked before anything is spent: Conflict when the folder holds a lineage of another run or of a person's.
[[nodiscard]] Status checkWalkFolder(const std::filesystem::path &directory, const std::string &run);

/// Writes the walk as a lineage folder: made whole beside it and put in its place at once. An older folder of the same run is replaced;
/// trials and branches that were added to it meanwhile are taken over. Nothing is written when all of it is there already.
[[nodiscard]] Status writeWalk(const std::filesystem::path &directory, const WalkHead &head,
                               const Walk &walk);

} // namespace klineage::run
