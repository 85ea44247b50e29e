// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/caseinstance.h"

namespace klineage::gate {

/// The timed case with what its other cases are filled with, so that a kernel cannot be right on hard inputs of small shapes alone. Of
/// operators that treat rows one by one each row has the content of one of the cases (those with an exact result left out where the timed case has none), or, about
/// half of them, that of the timed one: who looks at some rows to know the others is wrong. Of products and convolutions all inputs are
/// `mixed`. Nothing where there is no such case, and for other operators, whose cases need not make sense at the timed length.
[[nodiscard]] std::optional<workload::Case> hardContent(const workload::Workload &workload);

/// The work of the timed case is so little that it can be checked once more.
[[nodiscard]] bool isLittleWork(const workload::Workload &workload);

/// Some output of it goes beyond what its type can hold, as no case of the workload need do at this shape.
[[nodiscard]] bool overflows(const CaseInstance &instance);

/// Widens the tolerance of content whose scales differ from row to row. Of a product: a correct order of operations that adds rows before it
/// multiplies them (Strassen's, Winograd's) errs in proportion to the largest rows, not to the element's own, so that each element may
/// be off by 2⁻²¹ (eight roundings of single precision) of max‖a's rows‖ · max‖b's columns‖. One and two levels of Strassen's stay
/// within six; TF32 is at 2⁻¹¹/√K. Of rows with contents of several cases: the RMS of all says little of one, so atol is six times as much.
void widenTolerance(const workload::Workload &workload, const workload::Case &c, CaseInstance &instance);

} // namespace klineage::gate
