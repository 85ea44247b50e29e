// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace klineage::policy {

/// More than a candidate file may have (kernel::maxCandidateBytes), with room for words around it.
inline constexpr std::size_t maxReplyBytes = std::size_t{8} << 20;

/// What an author's reply says.
struct Reading {
    enum class Kind { Block, Done };
    Kind kind = Kind::Block;
    std::string text; ///< the block's lines, each ended by '\n'; of Done the reason, one line
};

/// Strictly: exactly one fenced block (``` or ~~~, three or more) that is closed, or none and a line that begins with "DONE". Line
/// ends become '\n'; a fence inside the block must be shorter or of the other kind. A reply that begins with "/*klineage" and has no
/// fence is a block itself: what a person who edits the file gives. The error is a sentence to send back.
[[nodiscard]] Result<Reading> readReply(std::string_view reply);

/// The same for a reply that must hold a candidate file: the block begins with "/*klineage" and is no longer than a candidate may be.
[[nodiscard]] Result<Reading> readCandidateReply(std::string_view reply);

/// What two candidates have in common when only comments, blanks and line breaks tell them apart. Not C, only a key for comparing.
[[nodiscard]] std::string normalizedCode(std::string_view candidate);

} // namespace klineage::policy
