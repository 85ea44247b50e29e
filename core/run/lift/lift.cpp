// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/context.h"

namespace klineage::run {

Result<Ending> lift(Context &)
{
    return fail(ErrorCode::Unavailable, "This version cannot lift yet.");
}

} // namespace klineage::run
