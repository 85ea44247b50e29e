// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace klineage::files {

/// What records are written with: members stay in the order in which they were put in, the one in which a person reads them.
using OrderedJson = nlohmann::ordered_json;

/// One line; bytes that are no UTF-8 become U+FFFD.
template <typename Json>
[[nodiscard]] std::string oneLine(const Json &value)
{
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A member for a text that is there; nothing for an empty one.
template <typename Json>
void setUnlessEmpty(Json &object, const char *key, const std::string &text)
{
    if (!text.empty())
        object[key] = text;
}

} // namespace klineage::files
