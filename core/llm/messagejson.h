// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/jsonreader.h"
#include "core/llm/message.h"

namespace klineage::llm {

// Requests, replies and usage as they stand in transcripts, in ledgers and on the stdin of `exec`. Reading throws
// files::JsonFormatError and is called inside files::parseJsonLine().

[[nodiscard]] nlohmann::json toJson(const Usage &usage);
[[nodiscard]] nlohmann::json toJson(const Request &request);
[[nodiscard]] nlohmann::json toJson(const Reply &reply);

[[nodiscard]] Usage readUsage(const nlohmann::json &value, const files::JsonPath &path);
[[nodiscard]] Request readRequest(const nlohmann::json &value, const files::JsonPath &path);
[[nodiscard]] Reply readReply(const nlohmann::json &value, const files::JsonPath &path);

/// A whole number from 0 to most.
[[nodiscard]] std::int64_t readCount(files::JsonReader &reader, const std::string &key, std::int64_t most);
/// One line; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string dumped(const nlohmann::json &value);

} // namespace klineage::llm
