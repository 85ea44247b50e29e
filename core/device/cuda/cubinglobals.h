// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace klineage::gate::cuda {

/// A variable of a module that kernels can write: __device__ variables, and constant tables that the compiler put beside them.
struct DeviceGlobal {
    std::string name;               ///< as the driver knows it
    std::vector<std::byte> initial; ///< what a freshly loaded module holds
};

/// Reads the ELF of a cubin: objects in the sections .nv.global and .nv.global.init. Works without CUDA. Fails on anything that is not
/// a 64-bit little-endian ELF with sound tables, and on more than 64 MiB of variables.
[[nodiscard]] Result<std::vector<DeviceGlobal>> globalsOf(std::span<const std::byte> cubin);

} // namespace klineage::gate::cuda
