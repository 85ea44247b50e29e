// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/replyreader.h"

#include <algorithm>
#include <utility>

namespace klineage::llm {

namespace {

/// A reply of the longest text, every character of it escaped, and room for what is around it.
constexpr std::size_t maxWholeAnswer = 8 * maxReplyBytes;
constexpr std::string_view byteOrderMark = "\xef\xbb\xbf";

/// Cuts off what a body may begin with and says nothing; false when nothing else has come yet.
bool trimBeginning(std::string &text)
{
    std::string_view left = text;
    for (std::size_t before = left.size() + 1; left.size() < before;) {
        before = left.size();
        left.remove_prefix(std::min(left.size(), left.find_first_not_of(" \t\r\n")));
        if (left.starts_with(byteOrderMark))
            left.remove_prefix(byteOrderMark.size());
    }
    text.erase(0, text.size() - left.size());
    return !byteOrderMark.starts_with(text); // the rest of a mark may be on its way
}

/// No line of a stream begins so: it is JSON, or a page for people.
bool isOther(char first)
{
    return first == '{' || first == '[' || first == '<';
}

} // namespace

ReplyReader::ReplyReader(const Dialect &dialect, const std::string &key, TextCallback onText)
    : m_decoder(dialect.decoder())
    , m_key(key)
    , m_onText(std::move(onText))
    , m_shown(key)
{}

Result<bool> ReplyReader::take(std::string_view bytes)
{
    std::string beginning;
    if (m_form == Form::Unknown) {
        m_text += bytes;
        if (!trimBeginning(m_text))
            return false;
        m_form = isOther(m_text.front()) ? Form::Other : Form::Stream;
        beginning = std::exchange(m_text, {});
        bytes = beginning;
    }
    if (m_form == Form::Other) {
        m_text += bytes;
        if (m_text.size() > maxWholeAnswer)
            return fail(ErrorCode::Protocol, "The server's answer is longer than any reply.");
        return false;
    }
    const Status fed = m_parser.feed(bytes, [this](const SseEvent &event) { return takeEvent(event); });
    if (!fed)
        return tl::unexpected(fed.error());
    return m_whole;
}

Status ReplyReader::takeEvent(const SseEvent &event)
{
    if (m_whole || event.data.find_first_not_of(" \n") == std::string::npos) // blanks are a sign of life
        return {};
    const Result<bool> taken = m_decoder->take({event.name, scrubbed(event.data, m_key)},
                                               [this](std::string_view text) { show(text); });
    if (!taken)
        return tl::unexpected(taken.error());
    m_whole = *taken;
    return {};
}

Status ReplyReader::finish()
{
    if (m_whole)
        return {};
    if (m_form == Form::Other) {
        const Status taken =
            m_decoder->takeWhole(scrubbed(m_text, m_key), [this](std::string_view text) { show(text); });
        m_whole = taken.has_value();
        return taken;
    }
    // Some servers leave out the blank line after the last event. Half of one is no JSON.
    const Status fed = m_parser.feed("\n\n", [this](const SseEvent &event) { return takeEvent(event); });
    m_whole = m_whole || m_decoder->isWholeAtEnd();
    if (m_whole)
        return {};
    if (!fed && fed.error().code == ErrorCode::Unavailable)
        return fed;
    return fail(ErrorCode::Protocol, "The server ended its answer before the reply was whole.");
}

Reply ReplyReader::takeReply()
{
    if (const std::string rest = m_shown.rest(); m_onText && !rest.empty())
        m_onText(rest);
    Reply reply = std::move(m_decoder->reply());
    for (std::string *text : {&reply.text, &reply.model, &reply.requestId})
        *text = scrubbed(*text, m_key);
    return reply;
}

void ReplyReader::show(std::string_view text)
{
    if (!m_onText)
        return;
    if (const std::string shown = m_shown.take(text); !shown.empty())
        m_onText(shown);
}

} // namespace klineage::llm
