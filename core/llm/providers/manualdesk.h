// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/provider.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace klineage::llm {

/// Where a request lies until a person has answered it. The provider waits on one thread; a window shows and answers on another.
/// Thread-safe.
class ManualDesk
{
public:
    struct Pending {
        int number = 0; ///< 1, 2, …: names the request when it is answered
        Request request;
    };

    [[nodiscard]] std::optional<Pending> pending() const;
    /// Hands the reply in. Conflict when another request, or none, is waiting; InvalidInput when the text is blank or too long.
    [[nodiscard]] Status reply(int number, std::string text);
    /// Called whenever pending() has become another, on the provider's thread or the answering one; must not call the desk. Set it
    /// before the first request.
    void setOnChange(std::function<void()> onChange);

    /// For the provider: lays the request down and waits.
    [[nodiscard]] Result<std::string> wait(const Request &request, const std::stop_token &stop);

private:
    mutable std::mutex m_mutex;
    std::condition_variable_any m_answered;
    std::optional<Pending> m_pending;
    std::optional<std::string> m_answer;
    int m_last = 0;
    std::function<void()> m_onChange;
};

/// "manual": a person at a desk.
class DeskProvider final : public Provider
{
public:
    explicit DeskProvider(std::shared_ptr<ManualDesk> desk);

    [[nodiscard]] std::string name() const override { return "manual"; }
    [[nodiscard]] bool isPaid() const override { return false; }
    [[nodiscard]] tl::expected<Reply, ProviderFailure> ask(const Request &request, std::stop_token stop,
                                                           const TextCallback &onText = {}) override;

private:
    std::shared_ptr<ManualDesk> m_desk;
};

/// What a person wrote since then: of no model, and nobody counted its tokens.
[[nodiscard]] Reply handwritten(std::string text, std::chrono::steady_clock::time_point began,
                                const TextCallback &onText);

} // namespace klineage::llm
