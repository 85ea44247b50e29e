// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace klineage::mcp {

/// Checks a value against the part of JSON Schema that the tools here use: type, properties, required, additionalProperties (false),
/// items, enum, minLength, maxLength (bytes), maxItems, maxProperties, minimum, maximum. Returns the first problem as a sentence that
/// names the place ("features[2].locus is missing."); nothing when the value fits. Unknown keys get a suggestion.
[[nodiscard]] std::optional<std::string> schemaProblem(const nlohmann::json &schema,
                                                       const nlohmann::json &value);

} // namespace klineage::mcp
