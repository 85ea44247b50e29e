// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/jsonreader.h"
#include "core/files/jsontext.h"
#include "core/llm/message.h"

namespace klineage::llm {

// Requests, replies and usage as they stand in transcripts, in ledgers and on the stdin of `exec`. Reading throws
// files::JsonFormatError and is called inside files::parseJsonLine().

[[nodiscard]] files::OrderedJson toJson(const Usage &usage);
[[nodiscard]] files::OrderedJson toJson(const Message &message);
[[nodiscard]] files::OrderedJson toJson(const Request &request);
[[nodiscard]] files::OrderedJson toJson(const Reply &reply);

[[nodiscard]] Usage readUsage(const nlohmann::json &value, const files::JsonPath &path);
[[nodiscard]] Message readMessage(const nlohmann::json &value, const files::JsonPath &path);
[[nodiscard]] Reply readReply(const nlohmann::json &value, const files::JsonPath &path);

/// A whole number from 0 to most.
[[nodiscard]] std::int64_t readCount(files::JsonReader &reader, const std::string &key, std::int64_t most);
inline constexpr std::size_t maxWrittenText = 3 * maxRequestBytes; ///< replaced bytes grow threefold at most
inline constexpr std::size_t maxWrittenName = 1024;

} // namespace klineage::llm
