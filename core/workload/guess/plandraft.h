// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/outline/outline.h"
#include "core/workload/workload.h"

#include <string>
#include <vector>

namespace klineage::workload {

/// A plan of one launch as somebody types it: nothing here needs to be valid.
struct PlanDraft {
    kernel::Surface surface;
    std::string code; ///< without a plan
    std::vector<kernel::Tunable> tunables;
    std::string kernel;
    std::vector<std::string> grid; ///< expressions, x first
    std::vector<std::string> block;
    std::string shared;            ///< bytes; empty: none
    std::vector<std::string> args; ///< as in the plan: "x", "int M"
};

/// What is wrong with one field of a draft.
struct FieldProblem {
    std::string field;   ///< "kernel", "grid", "block", "shared", "tunables", "arg:2" (from 0); "": the file
    std::string message; ///< a sentence
};

/// "ceil_div(C, 64), R" at the commas that stand in no parentheses; blanks around the parts are left out. An empty text has no parts.
[[nodiscard]] std::vector<std::string> splitList(std::string_view text);
[[nodiscard]] std::string joinList(const std::vector<std::string> &parts);

/// The candidate file that the draft makes: plan, then the code, in which the tunables win over `#define`s of their names.
[[nodiscard]] std::string candidateText(const PlanDraft &draft);

/// A candidate as a draft. Nothing when its plan says more than a draft can hold (several launches, workspaces, tensor maps, clusters,
/// a guard, attributes): that is edited as text.
[[nodiscard]] std::optional<PlanDraft> draftOf(const kernel::Candidate &candidate);

/// Everything that can be said of the draft without a device: expressions and their names, the kernel in the code, each argument against
/// its parameter and the workload, the whole by the candidate parser, and the plan resolved for every case. Empty: it can be gated.
[[nodiscard]] std::vector<FieldProblem> checkDraft(const PlanDraft &draft, const Workload &workload);

/// The same of a candidate's text that was written by hand; fields are "" with the place in the message.
[[nodiscard]] std::vector<FieldProblem> checkCandidateText(std::string_view text, const std::string &fileName,
                                                           const Workload &workload);

} // namespace klineage::workload
