// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::llm {

enum class Role { User, Assistant };
[[nodiscard]] const char *toString(Role role); ///< user assistant
[[nodiscard]] std::optional<Role> roleFromString(std::string_view name);

struct Message {
    Role role = Role::User;
    std::string text;
    bool cacheUpToHere = false; ///< the prefix that ends here will be sent again: ask the server to cache it
    friend bool operator==(const Message &, const Message &) = default;
};

/// One question to an author (a model, a person, a program). Plain text in, plain text out: no tools.
struct Request {
    std::string purpose; ///< "materialize", "rewrite", "rederive", "lift", …: for logs and for people
    std::string model;   ///< as the server names it; empty for providers without models
    std::string system;
    bool cacheSystem = true;
    std::vector<Message> messages; ///< begins with the user's, alternates, ends with the user's
    int maxOutputTokens = 16384;
    std::optional<double> temperature; ///< left to the server when empty
    std::string effort; ///< how much to think, in the server's words ("low", "high"); left to it when empty
    std::string extraBody; ///< a JSON object on one line whose members go into the body as they are; or empty
};

inline constexpr std::size_t maxRequestBytes = std::size_t{4} << 20; ///< system and messages together
inline constexpr std::size_t maxReplyBytes = std::size_t{2} << 20;   ///< of a reply's text
inline constexpr std::size_t maxExtraBodyBytes = std::size_t{64} << 10;
inline constexpr std::size_t maxMessages = 1024;
inline constexpr int maxOutputTokensLimit = 1'000'000;
inline constexpr std::int64_t maxUsageTokens = std::int64_t{1} << 40; ///< more is no count of tokens

/// Tokens as the server counted them.
struct Usage {
    std::int64_t input = 0;      ///< not from the cache
    std::int64_t cacheRead = 0;  ///< input from the cache
    std::int64_t cacheWrite = 0; ///< input written to the cache
    std::int64_t output = 0;
    friend bool operator==(const Usage &, const Usage &) = default;
};

enum class StopReason { End, MaxTokens, Refusal, Other };
[[nodiscard]] const char *toString(StopReason reason); ///< end max_tokens refusal other
[[nodiscard]] std::optional<StopReason> stopReasonFromString(std::string_view name);

struct Reply {
    std::string text;
    StopReason stop = StopReason::End;
    Usage usage;
    /// False: the server gave no usage, or one that cannot be true; usage is zero then, and the most that the request can cost counts.
    bool usageKnown = true;
    std::string model;     ///< as the server names it in its answer
    std::string requestId; ///< the server's; empty when it gave none
    double seconds = 0;
};

/// InvalidInput unless the request is one that every provider can take: the order of roles, no empty message, the limits above.
[[nodiscard]] Status checkRequest(const Request &request);
/// Whether each count lies in 0 … maxUsageTokens.
[[nodiscard]] bool isSane(const Usage &usage);
/// The same text with every byte that is no UTF-8 replaced by U+FFFD, as it is when it is written down.
[[nodiscard]] std::string validUtf8(std::string_view text);

/// sha-256 of everything in the request that decides the answer (all but purpose and cache marks), over a canonical JSON text.
[[nodiscard]] std::string fingerprint(const Request &request);
/// Where two requests begin to decide different answers: "message 2 differs at byte 120: '…' was recorded, '…' is asked now"; empty
/// when their fingerprints agree.
[[nodiscard]] std::string firstDifference(const Request &recorded, const Request &now);

} // namespace klineage::llm
