// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace klineage::gate::cuda {

/// A variable of a module that kernels can write: __device__ and __constant__ variables (these through a pointer), and constant tables
/// that the compiler put beside them.
struct DeviceGlobal {
    std::string name;                       ///< as the driver knows it
    std::vector<std::byte> initial;         ///< what a freshly loaded module holds
    std::vector<std::uint64_t> relocated{}; ///< offsets where the loader puts addresses, of 8 bytes at most

    /// Whether it still holds what a freshly loaded module does, but for those addresses.
    [[nodiscard]] bool unchanged(std::span<const std::byte> now) const;
};

/// Reads the ELF of a cubin: objects in the sections .nv.global, .nv.global.init and .nv.constant3. Works without CUDA. Fails on anything that is not
/// a 64-bit little-endian ELF with sound tables, on more than 64 MiB of variables, and on calls of what is not in it but printf() and assert(): what a heap hands
/// out lasts from launch to launch, and is no symbol.
[[nodiscard]] Result<std::vector<DeviceGlobal>> globalsOf(std::span<const std::byte> cubin);

} // namespace klineage::gate::cuda
