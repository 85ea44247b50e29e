// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace klineage::files {

/// Whether it is UTF-8 without a zero byte.
[[nodiscard]] bool isUtf8Text(const std::string &text);

} // namespace klineage::files
