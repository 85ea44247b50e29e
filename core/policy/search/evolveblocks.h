// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <string>
#include <string_view>

namespace klineage::policy {

/// The parts of a file that a search may change: what lies between a line with EVOLVE-BLOCK-START and the next one with
/// EVOLVE-BLOCK-END, in comments of any style. A file without such lines may be changed anywhere.
class EvolveBlocks
{
public:
    /// InvalidInput, with the line, when a block is not closed, or is closed or opened twice.
    [[nodiscard]] static Result<EvolveBlocks> of(std::string_view root);

    [[nodiscard]] bool isWholeFile() const { return m_isWholeFile; }
    /// What is wrong with a candidate, a sentence for its author: it changes something outside of the blocks. Empty: nothing.
    [[nodiscard]] std::string problemOf(std::string_view candidate) const;

private:
    bool m_isWholeFile = true;
    std::string m_fixed; ///< the lines outside of blocks, markers among them
};

} // namespace klineage::policy
