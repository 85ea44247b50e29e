// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/utf8text.h"

#include <nlohmann/json.hpp>

namespace klineage::files {

bool isUtf8Text(const std::string &text)
{
    try {
        static_cast<void>(nlohmann::json(text).dump());
        return text.find('\0') == std::string::npos;
    } catch (const nlohmann::json::exception &) {
        return false;
    }
}

} // namespace klineage::files
