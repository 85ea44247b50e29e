// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/references/cublibrary.h"

namespace klineage::gate {

std::filesystem::path cubLibraryPath()
{
    constexpr const char *name = "libklineage-cub.so";
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    const auto installed = folder.parent_path() / "lib/klineage" / name;
    if (!std::filesystem::exists(folder / name, ignored) && std::filesystem::exists(installed, ignored))
        return installed;
    return folder / name;
}

} // namespace klineage::gate
