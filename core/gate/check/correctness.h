// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/casequeue.h"
#include "core/gate/check/precision.h"
#include "core/gate/supervisor/trialcontext.h"

namespace klineage::gate {

/// What the correctness stage hands on.
struct CorrectnessResult {
    std::vector<CaseInstancePtr> timed; ///< instances of the timed case, one a seed
    /// Of the timed case too, one for each of TrialContext::unseenSeeds: content that no launch has seen.
    std::vector<CaseInstancePtr> unseen;
    std::vector<CaseInstancePtr> hard; ///< of hardContents()
    std::vector<std::uint64_t>
        seeds;                      ///< all that were used, in order: the other cases', then the timed one's
    std::vector<std::string> drawn; ///< shapes that were drawn: "hidden (M = 17, N = 40)"
    Precision precision;
    double roughNs = 0; ///< one run of the timed case, seen from here: an upper estimate
};

/// The cases of a trial, with what timed runs will read. Shapes are drawn, and seeds; the candidate is fixed by now. context.instance
/// must outlive it.
[[nodiscard]] std::unique_ptr<CaseQueue> queueCases(const TrialContext &context, bool ahead);

/// Runs the candidate on every case, each instance twice with different poison, and judges every byte after every launch. Small cases
/// come first, because they find most mistakes soonest. result is filled as far as the stage came.
[[nodiscard]] StageResult<void> checkCorrectness(const PreparedCandidate &prepared, ModuleId module,
                                                 const TrialContext &context, CaseQueue &queue,
                                                 CorrectnessResult &result);

/// One armed run and its judgement; nothing when all is well.
[[nodiscard]] StageResult<void> checkedRun(CheckedSet &set, SubjectId subject, std::size_t setIndex,
                                           Fill fill, const Where &where, const TrialContext &context,
                                           double *elapsedNs = nullptr, Look look = Look::Everything);

} // namespace klineage::gate
