// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"

namespace klineage::interop {

/// The computation of a workload as the reference of a definition: Python whose run() takes the inputs as torch tensors, in declared order,
/// and returns the outputs in their types. Of a built-in oracle its text in resources/python/operators.py, of one in Python its own source
/// with a run() around it where that has other arguments or arrays. Error: an oracle that there is no text of.
[[nodiscard]] Result<std::string> referenceText(const workload::Workload &workload);

/// The format's word for a type, which is torch's too; nullptr: it has none.
[[nodiscard]] const char *datasetDtype(kernel::DType dtype);

} // namespace klineage::interop
