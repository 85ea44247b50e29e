// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/llm/loopbackserver.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using nlohmann::json;

namespace {

bool sendAll(int connection, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t put = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
}

std::string lower(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

SeenRequest parseHead(const std::string &head)
{
    SeenRequest seen;
    const std::size_t pathBegin = head.find(' ') + 1;
    seen.path = head.substr(pathBegin, head.find(' ', pathBegin) - pathBegin);
    for (std::size_t at = head.find("\r\n"); at != std::string::npos && at + 2 < head.size();) {
        const std::size_t end = head.find("\r\n", at + 2);
        const std::string line = head.substr(at + 2, end == std::string::npos ? end : end - at - 2);
        if (const std::size_t colon = line.find(": "); colon != std::string::npos)
            seen.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
        at = end;
    }
    return seen;
}

std::string event(const std::string &name, const json &data)
{
    return (name.empty() ? "" : "event: " + name + "\n") + "data: " + data.dump() + "\n\n";
}

std::vector<std::string> inPieces(const std::string &text)
{
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size(); at += 3)
        pieces.push_back(text.substr(at, 3));
    return pieces;
}

} // namespace

std::string SeenRequest::lastMessage() const
{
    if (!body.is_object())
        return {};
    const json &content = body["messages"].back()["content"];
    return content.is_string() ? content.get<std::string>() : content[0]["text"].get<std::string>();
}

LoopbackServer::LoopbackServer(Behaviour behaviour)
    : m_behaviour(std::move(behaviour))
{
    m_listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(m_listener, reinterpret_cast<sockaddr *>(&address), size);
    ::listen(m_listener, 64);
    ::getsockname(m_listener, reinterpret_cast<sockaddr *>(&address), &size);
    m_port = ntohs(address.sin_port);
    int ends[2] = {-1, -1};
    if (::pipe(ends) == 0) {
        m_stopRead = ends[0];
        m_stopWrite = ends[1];
    }
    m_thread = std::thread([this] { serve(); });
}

LoopbackServer::~LoopbackServer()
{
    ::close(m_stopWrite);
    m_thread.join();
    ::close(m_stopRead);
    ::close(m_listener);
}

std::string LoopbackServer::url() const
{
    return "http://127.0.0.1:" + std::to_string(m_port);
}

void LoopbackServer::serve()
{
    for (;;) {
        pollfd fds[] = {{m_listener, POLLIN, 0}, {m_stopRead, POLLIN, 0}};
        ::poll(fds, 2, -1);
        if (fds[1].revents)
            return;
        const int connection = ::accept4(m_listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0)
            continue;
        const int one = 1;
        ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        converse(connection);
        ::close(connection);
    }
}

void LoopbackServer::converse(int connection)
{
    std::string bytes;
    std::size_t expected = std::string::npos;
    SeenRequest seen;
    while (bytes.size() < expected) {
        pollfd fds[] = {{connection, POLLIN, 0}, {m_stopRead, POLLIN, 0}};
        ::poll(fds, 2, -1);
        char buffer[65536];
        const ssize_t got = fds[1].revents ? 0 : ::recv(connection, buffer, sizeof buffer, 0);
        if (got <= 0)
            return;
        bytes.append(buffer, static_cast<std::size_t>(got));
        const std::size_t end = bytes.find("\r\n\r\n");
        if (expected == std::string::npos && end != std::string::npos) {
            seen = parseHead(bytes.substr(0, end));
            expected = end + 4 + std::stoul("0" + seen.headers["content-length"]);
        }
    }
    seen.body = json::parse(bytes.substr(bytes.find("\r\n\r\n") + 4), nullptr, false);
    answer(connection, m_behaviour(seen));
}

void LoopbackServer::answer(int connection, const ServerAnswer &what) const
{
    if (what.reset) {
        const linger atOnce{1, 0};
        ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &atOnce, sizeof atOnce);
    }
    if (what.status == 0)
        return;
    std::string head = "HTTP/1.1 " + std::to_string(what.status) + " Said\r\n";
    for (const auto &[name, value] : what.headers)
        head += name + ": " + value + "\r\n";
    head +=
        "Content-Type: text/event-stream\r\nContent-Length: " + std::to_string(what.body.size()) + "\r\n\r\n";
    if (!what.raw && !sendAll(connection, head))
        return;
    const std::string_view body = what.raw ? *what.raw : what.body;
    const std::size_t end = std::min({body.size(), what.dropAfter.value_or(std::string::npos),
                                      what.stallAfter.value_or(std::string::npos)});
    const std::size_t step = what.pieceBytes == 0 ? end : what.pieceBytes;
    for (std::size_t at = 0; at < end; at += step) {
        if (!sendAll(connection, body.substr(at, std::min(step, end - at))))
            return;
    }
    pollfd fds[] = {{connection, POLLIN, 0}, {m_stopRead, POLLIN, 0}};
    while (!what.endless.empty() && ::poll(fds, 2, what.endlessEveryMs) == 0) {
        if (!sendAll(connection, what.endless))
            return;
    }
    if (what.stallAfter)
        ::poll(fds, 2, -1);
}

std::string anthropicStream(const std::string &text, const klineage::llm::Usage &usage,
                            const std::string &stopReason)
{
    std::string out = event("message_start", {{"type", "message_start"},
                                              {"message",
                                               {{"id", "msg_1"},
                                                {"model", "model-1-served"},
                                                {"usage",
                                                 {{"input_tokens", usage.input},
                                                  {"cache_read_input_tokens", usage.cacheRead},
                                                  {"cache_creation_input_tokens", usage.cacheWrite},
                                                  {"output_tokens", 1}}}}}});
    out += event("ping", {{"type", "ping"}});
    out += event("content_block_start", {{"type", "content_block_start"},
                                         {"index", 0},
                                         {"content_block", {{"type", "thinking"}, {"thinking", ""}}}});
    out += event("content_block_delta", {{"type", "content_block_delta"},
                                         {"index", 0},
                                         {"delta", {{"type", "thinking_delta"}, {"thinking", "hm"}}}});
    out += event(
        "content_block_start",
        {{"type", "content_block_start"}, {"index", 1}, {"content_block", {{"type", "text"}, {"text", ""}}}});
    for (const std::string &piece : inPieces(text))
        out += event("content_block_delta", {{"type", "content_block_delta"},
                                             {"index", 1},
                                             {"delta", {{"type", "text_delta"}, {"text", piece}}}});
    out += event("content_block_stop", {{"type", "content_block_stop"}, {"index", 1}});
    out += event("message_delta", {{"type", "message_delta"},
                                   {"delta", {{"stop_reason", stopReason}}},
                                   {"usage", {{"output_tokens", usage.output}}}});
    return out + event("message_stop", {{"type", "message_stop"}});
}

std::string openAiStream(const std::string &text, const klineage::llm::Usage &usage,
                         const std::string &finishReason)
{
    const auto chunk = [](const json &choices, const json &counted) {
        return event("", {{"id", "chatcmpl-1"},
                          {"object", "chat.completion.chunk"},
                          {"model", "model-1-served"},
                          {"choices", choices},
                          {"usage", counted}});
    };
    const auto choice = [](const json &delta, const json &finish) {
        return json::array({{{"index", 0}, {"delta", delta}, {"finish_reason", finish}}});
    };
    std::string out =
        ": a comment\n\n" + chunk(choice({{"role", "assistant"}, {"content", ""}}, nullptr), nullptr);
    for (const std::string &piece : inPieces(text))
        out += chunk(choice({{"content", piece}}, nullptr), nullptr);
    out += chunk(choice(json::object(), finishReason), nullptr);
    out += chunk(json::array(), {{"prompt_tokens", usage.input + usage.cacheRead},
                                 {"completion_tokens", usage.output},
                                 {"prompt_tokens_details", {{"cached_tokens", usage.cacheRead}}}});
    return out + "data: [DONE]\n\n";
}
