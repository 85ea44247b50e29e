// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

namespace klineage::interop {

/// The first line with words of a LICENSE in the folder, at most 200 bytes; empty: there is none.
[[nodiscard]] std::string licenseIn(const std::filesystem::path &folder);

} // namespace klineage::interop
