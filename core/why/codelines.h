// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/surfaces/surface.h"

#include <string_view>
#include <vector>

namespace klineage::why {

/// Which lines of a candidate have code: by 1-based line, element 0 is unused. Blank lines, comments and directives have none.
[[nodiscard]] std::vector<bool> codeLines(std::string_view text, kernel::Surface surface);

/// The line with code that is nearest to a line, the later one of two; 0: the text has no such line, or none with code.
[[nodiscard]] int nearestCode(const std::vector<bool> &lines, int line);

} // namespace klineage::why
