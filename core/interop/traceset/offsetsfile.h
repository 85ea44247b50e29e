// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"

#include <map>

namespace klineage::interop {

/// Integers by the names of tensors, one-dimensional.
using OffsetTensors = std::map<std::string, std::vector<std::int64_t>>;

/// What the integer inputs of a case hold, where that is the same in each trial: even offsets. Error: one whose content is drawn, its name.
[[nodiscard]] Result<OffsetTensors> fixedIntegers(const workload::Workload &workload,
                                                  const workload::Case &c);

/// The bytes of a safetensors file: a header's length (8 bytes, little-endian), the header in JSON, the tensors in their types.
[[nodiscard]] std::string safetensorsText(const workload::Workload &workload, const OffsetTensors &tensors);

} // namespace klineage::interop
