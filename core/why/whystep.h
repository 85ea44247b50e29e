// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/step.h"
#include "core/trial/analysis/explain/explain.h"
#include "core/trial/analysis/explain/rooflinepath.h"
#include "core/trial/analysis/launch/launchnumbers.h"
#include "core/workload/workload.h"

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace klineage::why {

/// A side of a step, by value: it outlives the lineage that it was taken from.
struct Side {
    std::string name; ///< "K07", "this trial"
    std::filesystem::path file;
    gate::Trial trial;
};

/// What is asked about a row: it against its parent, or against a pinned baseline.
struct Question {
    std::optional<Side>
        before; ///< empty: there is nothing before it, or that has no trial, or one of another device
    Side after;
    bool isParent = true; ///< `before` is what the row was made from, so that their rounds may be paired
    std::string noStep;   ///< why there is no `before`: a sentence
    std::optional<workload::Workload> workload; ///< for the launch plans
};

/// Empty when the row has no trial. workload may be nullptr.
[[nodiscard]] std::optional<Question> askStep(const lineage::Lineage &lineage, std::string_view row,
                                              std::string_view baseline, const workload::Workload *workload);

struct Answer {
    gate::Explanation explanation; ///< without a `before`: only `nothing` is said
    std::vector<gate::LaunchNumbers> before;
    std::vector<gate::LaunchNumbers> after;
};

/// Reads both files, compares them and evaluates their launch plans. Takes milliseconds, longer for files of 100,000 lines. What cannot be read
/// is left out: then lines or extents are missing.
[[nodiscard]] Answer answer(const Question &question, const std::stop_token &stop = {});

/// The chain from K0 to a row: states up to it, or to the state that an attempt or a branch was tried from and then that.
struct Chain {
    std::vector<gate::ChainedTrial> states; ///< those of the chain, then the lineage's other states
    std::size_t length = 0;                 ///< how many belong to the chain
};
[[nodiscard]] Chain chainTo(const lineage::Lineage &lineage, std::string_view row);

} // namespace klineage::why
