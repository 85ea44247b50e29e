// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/outline/codescan.h"
#include "core/kernel/outline/outline.h"

#include <map>
#include <span>

/// Internal to outlineSource().
namespace klineage::kernel {

using TokenSpan = std::span<const CodeToken>;
/// What a word stands for: of typedefs, `using` and macros.
using TypeAliases = std::map<std::string_view, std::vector<CodeToken>>;

/// One parameter of a kernel, without the commas around it. Aliases are followed 8 deep.
[[nodiscard]] KernelParameter readParameter(TokenSpan tokens, const TypeAliases &aliases);

} // namespace klineage::kernel
