// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace klineage::policy {

using Options = std::map<std::string, std::string>;

/// What a new run of the policy says where whoever starts it says nothing: how it asks by now. It is kept with the run or the plan, so
/// that those of earlier versions go on as they began.
[[nodiscard]] Options newOptions(std::string_view policy);

} // namespace klineage::policy
