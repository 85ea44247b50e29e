// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/files/formatnumber.h"

#include <string>

namespace klineage::files {

/// The text with which a TOML file is replaced, and in it what its reader passed over in the old one: the format that the old text says,
/// and the keys, tables written inline, in the table that they stood in. Elements of lists are found again by their first key ('id',
/// 'name', …), else by their place; what stood in one that is gone goes with it. Errors: InvalidInput, when a key cannot be kept (a date,
/// or a table that the new text has in one line).
[[nodiscard]] Result<std::string> withKeptKeys(const std::string &before, const std::string &after,
                                               const PassedOver &passedOver);

} // namespace klineage::files
