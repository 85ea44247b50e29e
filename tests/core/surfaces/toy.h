// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/surfaces/surface.h"

namespace klineage::test {

/// A third language on the CUDA device. This row and this folder are all that there is of it.
inline const kernel::SurfaceRow toyRow = {
    .language = {"toy", "Toy", ".toy", "toy", "text", "(*", "*)"},
    .device = kernel::DeviceKind::Cuda,
    .compiledApart = true,
    .includes = "A toy can include nothing.",
};

} // namespace klineage::test
