// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace klineage::files {

/// The same document without its comments: what people say beside a task is not a part of it. A line that held nothing else goes with
/// its comment, blank lines at the beginning too. Text that is no TOML comes out as some text.
[[nodiscard]] std::string withoutTomlComments(std::string_view text);

} // namespace klineage::files
