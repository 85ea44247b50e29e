// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/blend.h"
#include "core/gate/check/inputs.h"
#include "core/workload/workload.h"

#include <optional>

namespace klineage::gate {

/// How new content is made for a tensor that is filled like this; nothing: it stays as a seed has it.
[[nodiscard]] std::optional<Blend> blendFor(const HostTensor &tensor,
                                            const workload::Distribution &distribution);

} // namespace klineage::gate
