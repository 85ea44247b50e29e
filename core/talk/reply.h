// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <functional>
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

/// What a reply says once the thoughts that some servers send along with it are gone. A thought begins with <think> or <thinking> at the
/// beginning of a line outside of a fenced block and ends with the tag that closes it; a closing tag that nothing opened (a template
/// opened it) ends a thought that began with the reply, when it lies outside of a block or begins a line. One that is never closed
/// goes on to the end. Nothing is changed where there is none.
[[nodiscard]] std::string withoutThoughts(std::string_view reply);

/// Whether a block is what was asked for: of several in a reply the last such one counts.
using Accepts = std::function<bool(const std::string &block)>;

/// Without the thoughts: a fenced block (``` or ~~~, three or more) that is closed, or none and a line that begins with "DONE". Of
/// several blocks the last one that is accepted counts, else the last one; a block that is not closed is refused. Line ends become
/// '\n'; a fence inside the block must be shorter or of the other kind. A reply that begins with "/*klineage" and has no fence is a
/// block itself: what a person who edits the file gives. The error is a sentence to send back.
[[nodiscard]] Result<Reading> readReply(std::string_view reply, const Accepts &accepts = {});

/// The same for a reply that must hold a candidate file: the block begins with "/*klineage" and is no longer than a candidate may be. Of
/// several the last one whose plan can be read counts, else the last one that begins so; a block that is not closed and is no
/// candidate does no harm beside one that is.
[[nodiscard]] Result<Reading> readCandidateReply(std::string_view reply);

/// What two candidates have in common when only comments, blanks and line breaks tell them apart. Not C, only a key for comparing.
[[nodiscard]] std::string normalizedCode(std::string_view candidate);

} // namespace klineage::policy
