// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <stop_token>
#include <string>

namespace klineage::mcp {

/// What a tool says: text for the model, the same as an object for programs. A problem that the model can do something about is an
/// isError result, never an exception.
struct ToolResult {
    std::string text;
    nlohmann::json structured; ///< an object, or null
    bool isError = false;
};

[[nodiscard]] inline ToolResult toolError(std::string sentence)
{
    return {std::move(sentence), {}, true};
}
[[nodiscard]] inline ToolResult toolData(nlohmann::json data)
{
    std::string text = data.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    return {std::move(text), std::move(data), false};
}

/// How a call in flight is watched and stopped.
struct Call {
    std::stop_token stop;
    /// fraction 0…1 of the whole, never less than before; text for people. May be called from any thread.
    std::function<void(double fraction, const std::string &text)> progress;
};

struct Tool {
    std::string name;
    std::string title;
    std::string description;
    nlohmann::json inputSchema; ///< see schema.h; arguments that do not fit never reach run
    bool isReadOnly = true;     ///< changes nothing that lasts
    bool isLong =
        false; ///< runs on the server's own thread, one at a time, so that pings and cancellations are heard
    std::function<ToolResult(const nlohmann::json &arguments, const Call &call)> run;
    nlohmann::json outputSchema{}; ///< of ToolResult::structured where it is no error; null: none is said
};

} // namespace klineage::mcp
