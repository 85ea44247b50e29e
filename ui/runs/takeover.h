// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/providers/manualdesk.h"

#include <atomic>

namespace klineage::ui {

/// Whoever a run's settings name, until a person takes over: then the desk answers, and the transcript says "manual" of it. What a
/// person writes costs nothing. The switch is thread-safe and counts from the next question: a question begins with isPaid(), which
/// the author's budget asks once before it is sent.
class TakeOverProvider final : public llm::Provider
{
public:
    TakeOverProvider(std::unique_ptr<llm::Provider> provider, std::shared_ptr<llm::ManualDesk> desk,
                     std::shared_ptr<const std::atomic<bool>> byHand);

    [[nodiscard]] std::string name() const override;
    [[nodiscard]] bool isPaid() const override;
    [[nodiscard]] tl::expected<llm::Reply, llm::ProviderFailure> ask(
        const llm::Request &request, std::stop_token stop, const llm::TextCallback &onText = {}) override;

private:
    std::unique_ptr<llm::Provider> m_provider;
    llm::DeskProvider m_desk;
    std::shared_ptr<const std::atomic<bool>> m_byHand;
    mutable bool m_isByHand = false; ///< of this question, with all its attempts; the run's thread
};

} // namespace klineage::ui
