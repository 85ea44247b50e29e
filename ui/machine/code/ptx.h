// SPDX-License-Identifier: GPL-3.0-or-later
//
// PTX as a list of instructions with the source lines that its `.loc` directives say. Pure, no Qt.
#pragma once

#include "core/base/result.h"
#include "core/trial/listing.h"

#include <string>
#include <string_view>
#include <vector>

namespace klineage::ui {

inline constexpr std::size_t maxPtxBytes = std::size_t{32} << 20;
inline constexpr std::size_t maxPtxStatementBytes = std::size_t{64} << 10;
/// Instructions and labels of one list: more is refused.
inline constexpr std::size_t maxCodeRows = 200'000;

/// The instructions and labels ("$L__BB0_2:") of every function, in the order of the text; declarations and debug sections are left out.
/// line is the one in `file` that an instruction comes from, or from which what it comes from was inlined; offset its line in the
/// PTX, 1-based. InvalidInput when the text goes beyond the limits above or ends within a function: it is not to be trusted.
[[nodiscard]] Result<std::vector<gate::ListedInstruction>> parsePtx(std::string_view text,
                                                                    const std::string &file);

} // namespace klineage::ui
