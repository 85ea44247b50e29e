// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"

namespace klineage::gate {

/// The shape that a seed gives to a case with drawn axes; other cases are returned as they are. A trial records its seeds, so that the
/// shape can be had again. Pure.
[[nodiscard]] workload::Case drawCase(const workload::Case &c, std::uint64_t seed);

} // namespace klineage::gate
