// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/sse.h"

namespace klineage::llm {

SseParser::SseParser(std::size_t maxEventBytes)
    : m_maxEventBytes(maxEventBytes)
{}

Status SseParser::feed(std::string_view bytes, const Receiver &receive)
{
    if (m_afterCr && !bytes.empty()) {
        if (bytes.front() == '\n')
            bytes.remove_prefix(1);
        m_afterCr = false;
    }
    while (!bytes.empty()) {
        const std::size_t end = bytes.find_first_of("\r\n");
        m_line.append(bytes.substr(0, end));
        if (m_line.size() + m_event.data.size() > m_maxEventBytes)
            return fail(ErrorCode::Protocol, "An event of the stream is longer than "
                                                 + std::to_string(m_maxEventBytes) + " bytes.");
        if (end == std::string_view::npos)
            return {};
        const bool isCr = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        if (isCr && bytes.empty())
            m_afterCr = true;
        else if (isCr && bytes.front() == '\n')
            bytes.remove_prefix(1);
        if (Status taken = takeLine(receive); !taken)
            return taken;
    }
    return {};
}

Status SseParser::takeLine(const Receiver &receive)
{
    std::string line;
    line.swap(m_line);
    if (m_first && line.starts_with("\xef\xbb\xbf"))
        line.erase(0, 3);
    m_first = false;
    if (!line.empty()) {
        takeField(line);
        return {};
    }
    SseEvent event;
    std::swap(event, m_event);
    const bool hasData = std::exchange(m_hasData, false);
    if (!hasData)
        return {};
    if (event.name.empty())
        event.name = "message";
    return receive(event);
}

void SseParser::takeField(std::string_view line)
{
    const std::size_t colon = line.find(':');
    const std::string_view field = line.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    if (value.starts_with(' '))
        value.remove_prefix(1);
    if (field == "event") {
        m_event.name = value;
    } else if (field == "data") {
        if (m_hasData)
            m_event.data += '\n';
        m_event.data += value;
        m_hasData = true;
    }
}

} // namespace klineage::llm
