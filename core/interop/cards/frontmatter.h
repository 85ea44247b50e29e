// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace klineage::interop {

/// A Markdown file with YAML before it.
struct FrontMatter {
    nlohmann::json values; ///< an object of texts, lists and objects
    std::string body;      ///< lines end with '\n'
};

/// What such files hold of YAML: mappings, lists, plain, quoted and block scalars, lists and mappings in brackets. Every scalar is a
/// text. Anchors, tags, aliases and several documents are refused. At most 64 KiB, nested eight deep; the message of an error
/// has the line.
[[nodiscard]] Result<FrontMatter> parseFrontMatter(std::string_view text);

/// The texts in a value: itself, those of a list, "key: text" of an object.
[[nodiscard]] std::vector<std::string> textsIn(const nlohmann::json &value);
/// A member's text; its parts joined by line ends when it is no text; empty when it is missing.
[[nodiscard]] std::string textOf(const nlohmann::json &object, const char *key);

} // namespace klineage::interop
