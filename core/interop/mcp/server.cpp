// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/mcp/server.h"

#include "core/base/suggest.h"
#include "core/interop/mcp/schema.h"

#include <algorithm>
#include <chrono>

namespace klineage::mcp {

using nlohmann::json;

namespace {

constexpr std::size_t mostCalls = 16;
constexpr std::chrono::milliseconds progressEvery{100};

ToolResult runGuarded(const Tool &tool, const json &arguments, const Call &call)
{
    try {
        return tool.run(arguments, call);
    } catch (const std::exception &problem) {
        return toolError("The tool " + tool.name + " failed: " + problem.what() + '.');
    }
}

json requiredText(const json &params, const char *key)
{
    const auto found = params.find(key);
    return found != params.end() && found->is_string() ? *found : json();
}

} // namespace

const std::vector<std::string> &protocolVersions()
{
    static const std::vector<std::string> versions{"2025-06-18", "2025-03-26", "2024-11-05"};
    return versions;
}

/// Answers of one batch: sent together when the last is there.
struct Server::Batch {
    std::mutex mutex;
    json answers = json::array();
    std::size_t open = 0;
};

Server::Server(ServerInfo info, std::vector<Tool> tools, Send send)
    : m_info(std::move(info))
    , m_tools(std::move(tools))
    , m_send(std::move(send))
    , m_queue(std::make_unique<WorkQueue>())
{}

Server::~Server()
{
    {
        const std::lock_guard lock(m_flying);
        for (auto &[id, stop] : m_calls)
            stop.request_stop();
    }
    m_queue.reset();
}

void Server::send(const json &message)
{
    const std::string line = written(message);
    const std::lock_guard lock(m_sending);
    m_send(line);
}

void Server::receive(std::string_view line)
{
    if (line.find_first_not_of(" \t\r\n") == std::string_view::npos)
        return;
    const Incoming incoming = parseLine(line);
    if (!incoming.isBatch) {
        handle(incoming.messages.front(), [this](const json &answer) {
            if (!answer.is_null())
                send(answer);
        });
        return;
    }
    if (m_version != "2025-03-26") {
        send(errorMessage({}, invalidRequest, "Only version 2025-03-26 of the protocol has batches."));
        return;
    }
    const auto batch = std::make_shared<Batch>();
    for (const Message &message : incoming.messages)
        batch->open += std::holds_alternative<Request>(message) || std::holds_alternative<Refusal>(message);
    const Answer answer = [this, batch](const json &one) {
        json all;
        {
            const std::lock_guard lock(batch->mutex);
            if (!one.is_null())
                batch->answers.push_back(one);
            if (--batch->open == 0)
                all = std::move(batch->answers);
        }
        if (!all.empty())
            send(all);
    };
    for (const Message &message : incoming.messages)
        handle(message, answer);
}

void Server::handle(const Message &message, const Answer &answer)
{
    if (const auto *request = std::get_if<Request>(&message))
        handleRequest(*request, answer);
    else if (const auto *notification = std::get_if<Notification>(&message))
        handleNotification(*notification);
    else if (const auto *refusal = std::get_if<Refusal>(&message))
        answer(errorMessage(refusal->id, refusal->code, refusal->message));
}

void Server::handleRequest(const Request &request, const Answer &answer)
{
    if (request.method == "ping")
        answer(resultMessage(request.id, json::object()));
    else if (request.method == "initialize")
        answer(initialize(request));
    else if (m_version.empty())
        answer(errorMessage(request.id, invalidRequest, "The first request is 'initialize'."));
    else if (request.method == "tools/list")
        answer(listTools(request));
    else if (request.method == "tools/call")
        callTool(request, answer);
    else
        answer(errorMessage(request.id, methodNotFound,
                            "This server has no method '" + request.method.substr(0, 80) + "'."));
}

void Server::handleNotification(const Notification &notification)
{
    if (notification.method != "notifications/cancelled")
        return; // notifications/initialized asks for nothing, and unknown ones are passed over
    const auto id = notification.params.find("requestId");
    if (id == notification.params.end())
        return;
    const std::lock_guard lock(m_flying);
    if (const auto call = m_calls.find(written(*id)); call != m_calls.end())
        call->second.request_stop();
}

json Server::initialize(const Request &request)
{
    const json version = requiredText(request.params, "protocolVersion");
    const json client = request.params.value("clientInfo", json());
    if (!m_version.empty())
        return errorMessage(request.id, invalidRequest, "This session is initialized already.");
    if (version.is_null())
        return errorMessage(request.id, invalidParams, "'protocolVersion' is a string.");
    if (!client.is_object() || requiredText(client, "name").is_null()
        || requiredText(client, "version").is_null())
        return errorMessage(request.id, invalidParams,
                            "'clientInfo' is an object with the strings 'name' and 'version'.");
    if (!request.params.value("capabilities", json()).is_object())
        return errorMessage(request.id, invalidParams, "'capabilities' is an object.");
    const std::vector<std::string> &known = protocolVersions();
    const auto asked = std::find(known.begin(), known.end(), version.get_ref<const std::string &>());
    m_version = asked == known.end() ? known.front() : *asked;
    json server{{"name", m_info.name}, {"version", m_info.version}};
    if (speaks("2025-06-18"))
        server["title"] = m_info.title;
    return resultMessage(request.id, {{"protocolVersion", m_version},
                                      {"capabilities", {{"tools", {{"listChanged", false}}}}},
                                      {"serverInfo", server},
                                      {"instructions", m_info.instructions}});
}

json Server::listTools(const Request &request) const
{
    if (request.params.contains("cursor"))
        return errorMessage(request.id, invalidParams,
                            "All tools are on the first page: there is no cursor.");
    json list = json::array();
    for (const Tool &tool : m_tools) {
        json entry{{"name", tool.name}, {"description", tool.description}, {"inputSchema", tool.inputSchema}};
        if (speaks("2025-03-26"))
            entry["annotations"] = {{"title", tool.title},
                                    {"readOnlyHint", tool.isReadOnly},
                                    {"destructiveHint", false},
                                    {"openWorldHint", false}};
        if (speaks("2025-06-18"))
            entry["title"] = tool.title;
        list.push_back(std::move(entry));
    }
    return resultMessage(request.id, {{"tools", list}});
}

void Server::callTool(const Request &request, const Answer &answer)
{
    const json name = requiredText(request.params, "name");
    const json arguments = request.params.value("arguments", json::object());
    const auto tool =
        std::find_if(m_tools.begin(), m_tools.end(), [&](const Tool &one) { return json(one.name) == name; });
    if (name.is_null() || tool == m_tools.end()) {
        std::vector<std::string> names;
        for (const Tool &one : m_tools)
            names.push_back(one.name);
        const std::string wanted = name.is_null() ? "" : name.get<std::string>().substr(0, 80);
        answer(errorMessage(request.id, invalidParams,
                            "There is no tool '" + wanted + "'" + didYouMean(wanted, names) + "; there is "
                                + quotedList(names) + '.'));
        return;
    }
    if (!arguments.is_object()) {
        answer(errorMessage(request.id, invalidParams, "'arguments' is an object."));
        return;
    }
    if (const auto problem = schemaProblem(tool->inputSchema, arguments)) {
        answer(resultMessage(request.id, resultOf(toolError(*problem))));
        return;
    }
    if (tool->isLong)
        startLongCall(*tool, request, arguments, answer);
    else
        answer(resultMessage(request.id, resultOf(runGuarded(*tool, arguments, {{}, progressOf(request)}))));
}

void Server::startLongCall(const Tool &tool, const Request &request, const json &arguments,
                           const Answer &answer)
{
    const std::string key = written(request.id);
    std::stop_source stop;
    {
        const std::lock_guard lock(m_flying);
        if (m_calls.size() >= mostCalls) {
            answer(resultMessage(request.id,
                                 resultOf(toolError("Sixteen calls are waiting already: try again later."))));
            return;
        }
        if (!m_calls.emplace(key, stop).second) {
            answer(errorMessage(request.id, invalidRequest, "A call with this id is in flight."));
            return;
        }
    }
    m_queue->add([this, &tool, request, arguments, answer, key, stop] {
        ToolResult result;
        if (!stop.stop_requested())
            result = runGuarded(tool, arguments, {stop.get_token(), progressOf(request)});
        {
            const std::lock_guard lock(m_flying);
            m_calls.erase(key);
        }
        answer(stop.stop_requested() ? json() : resultMessage(request.id, resultOf(result)));
    });
}

std::function<void(double, const std::string &)> Server::progressOf(const Request &request)
{
    const json meta = request.params.value("_meta", json());
    const json token = meta.is_object() ? meta.value("progressToken", json()) : json();
    if (!token.is_string() && !token.is_number_integer())
        return [](double, const std::string &) {};
    struct State {
        std::mutex mutex;
        double last = -1;
        std::chrono::steady_clock::time_point when;
    };
    return [this, token, state = std::make_shared<State>()](double fraction, const std::string &text) {
        const auto now = std::chrono::steady_clock::now();
        {
            const std::lock_guard lock(state->mutex);
            // Each is more than the one before, as the protocol wants it.
            if (fraction <= state->last || (state->last >= 0 && now - state->when < progressEvery))
                return;
            state->last = fraction;
            state->when = now;
        }
        json params{{"progressToken", token}, {"progress", fraction}, {"total", 1}};
        if (speaks("2025-03-26"))
            params["message"] = text;
        send(notificationMessage("notifications/progress", params));
    };
}

json Server::resultOf(const ToolResult &result) const
{
    json out{{"content", {{{"type", "text"}, {"text", result.text}}}}, {"isError", result.isError}};
    if (!result.structured.is_null() && speaks("2025-06-18"))
        out["structuredContent"] = result.structured;
    return out;
}

} // namespace klineage::mcp
