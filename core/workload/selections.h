// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <string_view>

namespace klineage::workload {

/// Oracles that order or choose elements and do not compute with them.
inline constexpr std::array<std::string_view, 3> selections{"sort_rows", "topk_rows", "topk_sorted_rows"};

} // namespace klineage::workload
