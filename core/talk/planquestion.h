// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/guess/plandraft.h"

#include <string>
#include <string_view>
#include <vector>

namespace klineage::run {

/// What is asked about the launch of somebody's kernel.
struct PlanQuestion {
    std::string system;
    std::string message;
};

/// Asks for the plan of a draft: the workload, the code, what the fields say and what is wrong with them.
[[nodiscard]] Result<PlanQuestion> planQuestion(const workload::PlanDraft &draft,
                                                const workload::Workload &workload,
                                                const std::vector<workload::FieldProblem> &problems);

/// The candidate file that the reply's plan and the code make. Only the plan is taken from the reply; the code is the person's. InvalidInput, in
/// a sentence, for a reply without a block, or whose plan cannot be read.
[[nodiscard]] Result<std::string> readPlanReply(std::string_view reply, std::string_view code,
                                                kernel::Surface surface);

} // namespace klineage::run
