// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/expected.h"
#include "core/gate/check/inputs.h"

#include <optional>
#include <string>

namespace klineage::gate {

/// Compares outputs that need no work with what the oracle expects, as a candidate's would be: zeros, ones, the mean of the expected
/// output, its first element, a copy of each input of the same number of elements, and whatever was there before the launch. When
/// every output has one that passes, the case shows nothing about a candidate: "c passes as zeros". Pure; multi-threaded.
[[nodiscard]] std::optional<std::string> trivialPass(const std::vector<HostTensor> &tensors,
                                                     const ExpectedOutputs &expected,
                                                     const workload::Tolerance &tolerance);

/// Why a workload is refused whose timed case has such a pass.
[[nodiscard]] Error trivialError(const std::string &workload, const std::string &caseName,
                                 const std::string &pass);

} // namespace klineage::gate
