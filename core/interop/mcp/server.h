// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/mcp/message.h"
#include "core/interop/mcp/offers.h"
#include "core/interop/mcp/tool.h"
#include "core/interop/mcp/workqueue.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace klineage::mcp {

/// The versions of the protocol that are spoken, newest first.
[[nodiscard]] const std::vector<std::string> &protocolVersions();

struct ServerInfo {
    std::string name;
    std::string title;
    std::string version;
    std::string instructions; ///< how the tools are meant to be used, for the model
};

/// A server of the Model Context Protocol (modelcontextprotocol.io) that offers tools, resources and prompts, apart from its transport:
/// lines come in by receive() and go out by send. It speaks with clients that open a session by initialize, and with those whose every
/// request says its version itself (2026-07-28), on one connection if need be. Notifications: initialized, cancelled, progress; batches
/// where the version has them (2025-03-26).
///
/// Thread contract: receive() on one thread at a time; it returns at once but for short tools, which run in it. send is called from
/// that thread and from the server's own, one call at a time. A long call is stopped by notifications/cancelled and by destruction; then
/// it is not answered.
class Server
{
public:
    using Send = std::function<void(const std::string &line)>;

    Server(ServerInfo info, std::vector<Tool> tools, Send send, Offers offers = {});
    ~Server();
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    /// One message or batch, without the newline. Anything may be in it. tail: as parseLine() has it.
    void receive(std::string_view line, std::string_view tail = {});
    /// Blocks until no call is in flight.
    void wait() { m_queue->wait(); }

private:
    struct Batch;
    using Answer = std::function<void(nlohmann::json)>; ///< null: there is none

    void handle(const Message &message, const Answer &answer);
    void handleRequest(const Request &request, const Answer &answer);
    void handleNotification(const Notification &notification);
    [[nodiscard]] nlohmann::json initialize(const Request &request);
    [[nodiscard]] nlohmann::json discover() const;
    [[nodiscard]] nlohmann::json capabilities() const;
    /// The answer to everything but tools/call.
    [[nodiscard]] nlohmann::json answerOf(const Request &request, const std::string &version) const;
    [[nodiscard]] nlohmann::json toolList(const std::string &version) const;
    [[nodiscard]] nlohmann::json resourceList() const;
    [[nodiscard]] nlohmann::json readResource(const Request &request, const std::string &version) const;
    [[nodiscard]] nlohmann::json getPrompt(const Request &request, const std::string &version) const;
    void callTool(const Request &request, const std::string &version, const Answer &answer);
    void startLongCall(const Tool &tool, const Request &request, const nlohmann::json &arguments,
                       const std::string &version, const Answer &answer);
    [[nodiscard]] std::function<void(double, const std::string &)> progressOf(const Request &request,
                                                                              const std::string &version);
    /// A result in the form of the version; isList: clients of 2026-07-28 are told how long it holds.
    [[nodiscard]] nlohmann::json result(const Request &request, nlohmann::json result,
                                        const std::string &version, bool isList = false) const;
    void send(const nlohmann::json &message);

    ServerInfo m_info;
    std::vector<Tool> m_tools;
    Offers m_offers;
    Send m_send;
    std::mutex m_sending;
    std::string m_version; ///< agreed on; empty before initialize. Written before any call is started.
    std::mutex m_flying;
    std::map<std::string, std::stop_source> m_calls; ///< long calls by the id as it was written
    std::unique_ptr<WorkQueue> m_queue;
};

} // namespace klineage::mcp
