// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace klineage::llm {

/// One server-sent event.
struct SseEvent {
    std::string name; ///< "message" when the stream gave none
    std::string data; ///< its data lines, joined by newlines
};

/// Cuts a text/event-stream into events (WHATWG HTML, "server-sent events"). Bytes may come in any pieces; lines end with LF, CR or
/// CRLF; a byte order mark at the beginning, comments, ids and retry times are passed over. An event without data is none.
class SseParser
{
public:
    explicit SseParser(std::size_t maxEventBytes = std::size_t{4} << 20);

    /// Returns what the receiver returns when that is an error (nothing more is delivered then); Protocol when an event is longer than
    /// the limit.
    using Receiver = std::function<Status(const SseEvent &)>;
    [[nodiscard]] Status feed(std::string_view bytes, const Receiver &receive);

private:
    Status takeLine(const Receiver &receive);
    void takeField(std::string_view line);

    std::size_t m_maxEventBytes;
    std::string m_line;
    SseEvent m_event;
    bool m_hasData = false;
    bool m_afterCr = false;
    bool m_first = true; ///< no line has ended yet
};

} // namespace klineage::llm
