// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/providers/manualdesk.h"

#include <chrono>

namespace klineage::llm {

std::optional<ManualDesk::Pending> ManualDesk::pending() const
{
    const std::scoped_lock lock(m_mutex);
    return m_answer ? std::nullopt : m_pending;
}

void ManualDesk::setOnChange(std::function<void()> onChange)
{
    const std::scoped_lock lock(m_mutex);
    m_onChange = std::move(onChange);
}

Status ManualDesk::reply(int number, std::string text)
{
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        return fail(ErrorCode::InvalidInput, "The reply is empty.");
    if (text.size() > maxReplyBytes)
        return fail(ErrorCode::InvalidInput, "The reply is longer than 2 MiB.");
    std::function<void()> onChange;
    {
        const std::scoped_lock lock(m_mutex);
        if (!m_pending || m_answer || m_pending->number != number)
            return fail(ErrorCode::Conflict,
                        "Request " + std::to_string(number) + " does not wait for a reply any more.");
        m_answer = std::move(text);
        onChange = m_onChange;
    }
    m_answered.notify_all();
    if (onChange)
        onChange();
    return {};
}

Result<std::string> ManualDesk::wait(const Request &request, const std::stop_token &stop)
{
    std::unique_lock lock(m_mutex);
    m_pending = Pending{++m_last, request};
    m_answer.reset();
    const std::function<void()> onChange = m_onChange;
    lock.unlock();
    if (onChange)
        onChange();
    lock.lock();
    const bool answered = m_answered.wait(lock, stop, [this] { return m_answer.has_value(); });
    m_pending.reset();
    Result<std::string> answer = answered
                                     ? Result<std::string>(std::move(*m_answer))
                                     : fail(ErrorCode::Cancelled, "Nobody waits for the reply any more.");
    m_answer.reset();
    lock.unlock();
    if (!answered && onChange)
        onChange();
    return answer;
}

Reply handwritten(std::string text, std::chrono::steady_clock::time_point began, const TextCallback &onText)
{
    Reply reply;
    reply.text = std::move(text);
    reply.usageKnown = false;
    reply.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (onText)
        onText(reply.text);
    return reply;
}

DeskProvider::DeskProvider(std::shared_ptr<ManualDesk> desk)
    : m_desk(std::move(desk))
{}

tl::expected<Reply, ProviderFailure> DeskProvider::ask(const Request &request, std::stop_token stop,
                                                       const TextCallback &onText)
{
    const auto began = std::chrono::steady_clock::now();
    Result<std::string> text = m_desk->wait(request, stop);
    if (!text)
        return tl::unexpected(ProviderFailure{text.error(), {}, false});
    return handwritten(std::move(*text), began, onText);
}

} // namespace klineage::llm
