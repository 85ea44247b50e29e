// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>

namespace klineage::gate {

/// Where libklineage-cub.so (core/gate/cuda/cub) is for this program: beside it, or in ../lib/klineage when it is there. Builds without
/// nvcc have none, so the file need not exist.
[[nodiscard]] std::filesystem::path cubLibraryPath();

} // namespace klineage::gate
