// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <string_view>

namespace klineage::ui {

/// What warps waited for, in words: "long_scoreboard" is "global memory". A reason that is not known keeps its name.
[[nodiscard]] QString stallText(std::string_view reason);

} // namespace klineage::ui
