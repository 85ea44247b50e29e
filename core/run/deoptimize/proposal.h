// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <string>

namespace klineage::run {

/// What the author wants to remove next, or why nothing is left.
struct Proposal {
    bool complete = false;
    std::string reason; ///< of complete
    std::string category;
    std::string locus;
    std::string title;   ///< of the simpler kernel
    std::string summary; ///< what the optimization does, forward
};

/// The JSON of a reply; strict. The error is a sentence to send back.
[[nodiscard]] Result<Proposal> parseProposal(const std::string &json);

/// Categories in the order in which removing them tends to go well, with what they mean: a soft prior, as lines of Markdown.
[[nodiscard]] std::string categoryList();

} // namespace klineage::run
