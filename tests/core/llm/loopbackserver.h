// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/message.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

/// A request as the server saw it.
struct SeenRequest {
    std::string path;
    std::map<std::string, std::string> headers; ///< names in lower case
    nlohmann::json body;                        ///< null when it was no JSON

    [[nodiscard]] bool isAnthropic() const { return path == "/v1/messages"; }
    [[nodiscard]] std::string lastMessage() const; ///< the text of the last message, in either API
};

/// What the server does with a request.
struct ServerAnswer {
    int status = 200; ///< 0: none; the connection is closed without a word
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    std::size_t pieceBytes = 0;           ///< bytes a send; 0: all at once
    std::optional<std::size_t> dropAfter; ///< closes the connection after so many bytes of the body
    std::optional<std::size_t>
        stallAfter;                 ///< goes silent after so many bytes of the body until the client closes
    std::optional<std::string> raw; ///< sent as it is, in place of a head and the body
    std::string endless;            ///< sent behind all that again and again until the client closes
    int endlessEveryMs = 0;
    bool reset = false; ///< the connection is not closed but reset
};

/// An HTTP/1.1 server on 127.0.0.1, on a thread of its own, one connection at a time. The behaviour is called on that thread.
class LoopbackServer
{
public:
    using Behaviour = std::function<ServerAnswer(const SeenRequest &)>;

    explicit LoopbackServer(Behaviour behaviour);
    ~LoopbackServer();
    LoopbackServer(const LoopbackServer &) = delete;
    LoopbackServer &operator=(const LoopbackServer &) = delete;

    [[nodiscard]] std::string url() const; ///< "http://127.0.0.1:4711"
    [[nodiscard]] int port() const { return m_port; }

private:
    void serve();
    void converse(int connection);
    void answer(int connection, const ServerAnswer &what) const;

    Behaviour m_behaviour;
    int m_listener = -1;
    int m_port = 0;
    int m_stopRead = -1;
    int m_stopWrite = -1;
    std::thread m_thread;
};

/// The streams of both APIs: the text in pieces of three bytes.
[[nodiscard]] std::string anthropicStream(const std::string &text, const klineage::llm::Usage &usage,
                                          const std::string &stopReason = "end_turn");
[[nodiscard]] std::string openAiStream(const std::string &text, const klineage::llm::Usage &usage,
                                       const std::string &finishReason = "stop");
