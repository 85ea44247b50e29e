// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace klineage::mcp {

inline constexpr std::size_t maxLineBytes = std::size_t{16}
                                            << 20; ///< a candidate of 4 MiB, escaped, and its frame
inline constexpr int maxNesting = 32;
inline constexpr std::size_t maxBatch = 64;

/// Error codes of JSON-RPC 2.0.
inline constexpr int parseError = -32700;
inline constexpr int invalidRequest = -32600;
inline constexpr int methodNotFound = -32601;
inline constexpr int invalidParams = -32602;
inline constexpr int internalError = -32603;
/// Of the protocol, since 2026-07-28.
inline constexpr int unsupportedVersion = -32022;
inline constexpr int resourceNotFound = -32002; ///< before that version

struct Request {
    nlohmann::json id; ///< string or integer
    std::string method;
    nlohmann::json params; ///< an object; empty when left out
};

struct Notification {
    std::string method;
    nlohmann::json params;
};

/// An answer to something the server asked: it asks nothing, so these are passed over.
struct Response {};

/// What is wrong with a message, and whom it is answered to (null: nobody can tell).
struct Refusal {
    nlohmann::json id;
    int code = invalidRequest;
    std::string message;
};

using Message = std::variant<Request, Notification, Response, Refusal>;

/// One line of the transport: a message, or several in a batch. Never throws; what cannot be read is a Refusal.
struct Incoming {
    std::vector<Message> messages;
    bool isBatch = false;
};
/// tail: the last bytes of a line that was too long to be kept whole; empty: `line` is all of it. What is too long or too deep to be read
/// is answered to its id all the same, when that stands outside of all other values: a client waits for that one.
[[nodiscard]] Incoming parseLine(std::string_view line, std::string_view tail = {});

[[nodiscard]] nlohmann::json resultMessage(const nlohmann::json &id, nlohmann::json result);
[[nodiscard]] nlohmann::json errorMessage(const nlohmann::json &id, int code, const std::string &message,
                                          nlohmann::json data = {});
[[nodiscard]] nlohmann::json notificationMessage(const std::string &method, nlohmann::json params);
/// One line, no newline; bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string written(const nlohmann::json &message);

} // namespace klineage::mcp
