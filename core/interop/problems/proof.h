// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/problems/draft.h"

#include <stop_token>

namespace klineage::interop {

/// Runs a draft's oracle on its cases and settles what only that shows: which arrays it takes and whether it computes in double. Cases of our
/// own that it refuses are taken out and said in the notes; an Error when it cannot compute the timed case, or an output that takes no
/// work passes there.
[[nodiscard]] Status prove(Draft &draft, const std::stop_token &stop);

} // namespace klineage::interop
