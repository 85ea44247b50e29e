// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/llm/message.h"

#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

namespace klineage::llm {

/// Why there is no reply.
struct ProviderFailure {
    Error error;
    /// What was certainly used although nothing came of it (a reply that was counted to its end but cannot be used), or empty when
    /// the server said nothing. Counts only when mayBeCharged is false; otherwise the most counts.
    std::optional<Usage> usage;
    /// The request may have reached the server, so it may be charged: the caller must count the most that it can cost. False when it
    /// certainly was not charged (refused with 4xx/429/5xx, no connection, never sent).
    bool mayBeCharged = false;
};

/// Receives the reply's text as it arrives; pieces are cut at no particular place. Called on the thread of ask().
using TextCallback = std::function<void(std::string_view)>;

/// Hears, in whole sentences, what a person who waits would want to know: that a request is sent again, and why. On the thread of ask().
using NoticeCallback = std::function<void(const std::string &)>;

/// Whoever answers a request. ask() blocks; one call at a time; a stop request ends it at once with ErrorCode::Cancelled.
/// Never throws. Texts of errors never hold a key.
class Provider
{
public:
    virtual ~Provider() = default;
    /// "anthropic", "openai", "manual", "exec", "replay": what steps and transcripts call it.
    [[nodiscard]] virtual std::string name() const = 0;
    /// Whether replies cost dollars, so that a price is needed before the first request.
    [[nodiscard]] virtual bool isPaid() const = 0;
    [[nodiscard]] virtual tl::expected<Reply, ProviderFailure> ask(const Request &request,
                                                                   std::stop_token stop,
                                                                   const TextCallback &onText = {}) = 0;
};

} // namespace klineage::llm
