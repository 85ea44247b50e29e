// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/expected.h"
#include "core/gate/check/inputs.h"

#include <optional>
#include <string>
#include <vector>

namespace klineage::gate {

/// Small problems like the one that these tensors make up, for the same kernel: the same types, and what is compiled in or loops in
/// the kernel's own way (window, width of a head); otherwise odd shapes that fill no tile. Inputs are random. Empty when the oracle
/// has no kernel on the device.
[[nodiscard]] std::vector<std::vector<HostTensor>> smallCasesOf(const workload::Workload &workload,
                                                                const std::vector<HostTensor> &tensors);

/// Where the device's values are not the CPU's, up to what another order of sums in double explains (and the rounding to single
/// precision where they are): "element 17 is 3.5, not 3.25"; nothing when they agree.
[[nodiscard]] std::optional<std::string> disagreement(const ExpectedView &device,
                                                      const std::vector<double> &cpu, bool wide);

} // namespace klineage::gate
