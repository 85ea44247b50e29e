// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <span>

namespace klineage::gate::opencl {

/// Takes what was just written out of the caches, so that who runs first on it does not find it nearer than who comes later. Does nothing
/// where the processor has no way to.
void leaveCaches(std::span<const std::byte> bytes);

} // namespace klineage::gate::opencl
