// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <map>
#include <string>
#include <string_view>

namespace klineage::run {

/// What goes into a prompt's placeholders, by name.
using PromptValues = std::map<std::string, std::string>;

/// The text of resources/prompts/<name>.md, which is a part of the program; NotFound otherwise.
[[nodiscard]] Result<std::string_view> promptTemplate(std::string_view name);

/// Puts the values into the {{name}} placeholders of a template. Values are taken as they are and not looked at again. A placeholder
/// without a value, a value without a placeholder and "{{" without "}}" are InvalidInput: a prompt that lacks something is never sent.
[[nodiscard]] Result<std::string> fillPrompt(std::string_view text, const std::string &where,
                                             const PromptValues &values);

/// The template of that name, filled.
[[nodiscard]] Result<std::string> prompt(std::string_view name, const PromptValues &values = {});

/// The text as a fenced block of Markdown, in a fence longer than any run of backticks in it.
[[nodiscard]] std::string fenced(std::string_view text, std::string_view language);

} // namespace klineage::run
