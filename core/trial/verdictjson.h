// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/jsonreader.h"
#include "core/files/jsontext.h"
#include "core/trial/verdict.h"

namespace klineage::gate {

using files::JsonFormatError;
using files::JsonPath;
using files::JsonReader;

// The pieces of a trial's JSON that know their place in it; they throw JsonFormatError.

[[nodiscard]] files::OrderedJson writeInterval(const Interval &interval); ///< {"value", "low", "high"}
[[nodiscard]] files::OrderedJson writeVerdict(const Verdict &verdict);
[[nodiscard]] Interval readInterval(const nlohmann::json &value, const JsonPath &path);
[[nodiscard]] Verdict readVerdict(const nlohmann::json &value, const JsonPath &path);

/// For from_json: a JsonFormatError leaves as nlohmann::json::other_error.
template <typename Read>
void rethrowAsJson(Read &&read)
{
    try {
        read();
    } catch (const JsonFormatError &problem) {
        throw nlohmann::json::other_error::create(501, problem.message, nullptr);
    }
}

} // namespace klineage::gate
