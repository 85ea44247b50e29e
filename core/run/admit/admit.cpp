// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/context.h"

namespace klineage::run {

Result<Ending> admit(Context &)
{
    return fail(ErrorCode::Unavailable, "This version cannot admit yet.");
}

} // namespace klineage::run
