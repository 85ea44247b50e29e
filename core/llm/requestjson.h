// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/author.h"
#include "core/llm/messagejson.h"

namespace klineage::llm {

// The request of a line of transcript.jsonl. A request that shares text with that of an earlier line says "after", that line's number:
// what it leaves out is as there, and its messages come behind the first "keep" ones of that chat (left out: all of it), which ends
// with the reply as the assistant's. "cache": which of the kept messages are marked, counted from 1. core/llm/README.md, "transcript.jsonl".

[[nodiscard]] files::OrderedJson writeRequest(const Request &request, std::span<const Exchange> before);
/// Throws files::JsonFormatError, as what messagejson.h reads.
[[nodiscard]] Request readRequest(const nlohmann::json &value, const files::JsonPath &path,
                                  std::span<const Exchange> before);

} // namespace klineage::llm
