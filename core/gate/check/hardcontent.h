// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/caseinstance.h"

namespace klineage::gate {

/// The timed case with what its other cases are filled with, so that a kernel cannot be right on hard inputs of small shapes alone; any one of
/// them would do where there is no time for all. Of operators that treat rows one by one, and of the queries of attention, each row has the
/// content of one of the cases (those with an exact result left out where the timed case has none), or, about half of them, that of the timed
/// one: who looks at some rows to know the others is wrong. Sequences are as long as the timed ones in one content and of unlike lengths in the
/// other. Of products and convolutions the sums cancel to a drawn share (operands of 16 and 8 bits) or their means are low, in few rows two large terms do, one term of each is far larger than all
/// others, both operands are small, or one far smaller, half of the rows
/// are `mixed` and the operands 2^i and 2^-i as large, or all are whole numbers and the result is exact. Of the delta rule nothing is forgotten,
/// in all heads or in one group of them for a while, or the state is large, or small. Of few queries of attention two large terms of each score cancel, where all else is as usual,
/// or all scores lie far below zero. How far, how large and where is drawn, so that no threshold lies between what is hard here and what is not.
/// What nothing is done to is made as the inputs of timed runs are.
/// Nothing where there is no such case, and for other operators, whose cases need not make sense at the timed
/// length. seed: draws i.
[[nodiscard]] std::vector<workload::Case> hardContents(const workload::Workload &workload,
                                                       std::uint64_t seed);

/// Of operators that treat rows one by one: few rows, longer than those of any case, up to four times as long as the longest.
[[nodiscard]] std::optional<workload::Case> longerRows(const workload::Workload &workload,
                                                       std::uint64_t seed);

/// The work of the timed case is so little that it can be checked once more.
[[nodiscard]] bool isLittleWork(const workload::Workload &workload);

/// It is more, but no more than that some further contents can be checked.
[[nodiscard]] bool isModestWork(const workload::Workload &workload);

/// Some output of it goes beyond what its type can hold, as no case of the workload need do at this shape.
[[nodiscard]] bool overflows(const CaseInstance &instance);

/// Widens the tolerance of content whose scales differ from row to row, and of products of f32 whose means are low. Of a product: a correct order of operations that adds rows before it
/// multiplies them (Strassen's, Winograd's) errs in proportion to the largest rows, not to the element's own, so that each element may
/// be off by 2⁻²¹ (eight roundings of single precision) of max‖a's rows‖ · max‖b's columns‖. One and two levels of Strassen's stay
/// within six; TF32 is at 2⁻¹¹/√K. Tensor cores keep 13 bits below the largest of a sum of eight-bit numbers: beside one large term relL2
/// is at least 1e-2. Of rows with contents of several cases: the RMS of all says little of one, so atol is six times as much.
void widenTolerance(const workload::Workload &workload, const workload::Case &c, CaseInstance &instance);

} // namespace klineage::gate
