// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

namespace klineage::gate::cuda {

/// What a PTX text says of memory that threads have to themselves, whatever its spelling (comments, blanks, line ends).
struct LocalUse {
    /// It takes pieces of the stack as it runs, or asks where the stack is (alloca, stacksave, stackrestore): no attribute of a kernel says how much it
    /// uses, and what lies there lasts from sample to sample.
    bool takesFromStack = false;
    /// It may write to local memory, by a name, an address or in the frames of functions: that may lie where no attribute says that there is any.
    bool any = false;
    /// A text in quotes has a backslash, so that where it ends is a matter of opinion.
    bool isUnclear = false;
};
[[nodiscard]] LocalUse localUseOf(std::string_view ptx);

} // namespace klineage::gate::cuda
