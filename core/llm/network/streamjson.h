// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace klineage::llm {

// Lenient reading of what servers send: an API may grow keys at any time. Nothing throws.

/// Discarded when the text is no JSON, or nested deeper than any reply is. Bytes that are no UTF-8, and halves of characters that were
/// escaped alone ("\ud83d", when a server cuts its text between them), are read as U+FFFD.
[[nodiscard]] nlohmann::json parseLeniently(std::string_view text);

/// nullptr unless value is an object with this key and the member is not null.
[[nodiscard]] const nlohmann::json *member(const nlohmann::json &value, const char *key);
/// The member when it is a string, cut at most bytes; empty otherwise.
[[nodiscard]] std::string textMember(const nlohmann::json &value, const char *key, std::size_t most = 256);
/// The member's count of tokens; missing: 0. wrong becomes true when it is no whole number from 0 to maxUsageTokens.
[[nodiscard]] std::int64_t tokenMember(const nlohmann::json &value, const char *key, bool &wrong);

} // namespace klineage::llm
