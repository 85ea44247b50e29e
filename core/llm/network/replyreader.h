// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/network/dialect.h"
#include "core/llm/network/secrets.h"

namespace klineage::llm {

/// Makes one reply of the body of an answer: a stream of events, or one JSON object of a server that does not stream. The key is taken
/// out of all that is read, before any of it is cut, decoded or handed on.
class ReplyReader
{
public:
    ReplyReader(const Dialect &dialect, const std::string &key, TextCallback onText);

    /// The next bytes of the body; true when the reply is whole. Protocol, Unavailable as in StreamDecoder.
    [[nodiscard]] Result<bool> take(std::string_view bytes);
    /// The body is at its end, or the rest of it is lost. An Error when what came is no whole reply.
    [[nodiscard]] Status finish();
    [[nodiscard]] Reply takeReply();

private:
    enum class Form { Unknown, Stream, Other };
    Status takeEvent(const SseEvent &event);
    void show(std::string_view text);

    std::unique_ptr<StreamDecoder> m_decoder;
    std::string m_key;
    TextCallback m_onText;
    PiecewiseScrubber m_shown;
    SseParser m_parser;
    Form m_form = Form::Unknown;
    std::string m_text; ///< of a body that is no stream, or of one of which nothing but blanks has come
    bool m_whole = false;
};

} // namespace klineage::llm
