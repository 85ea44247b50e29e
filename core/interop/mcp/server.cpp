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

constexpr const char *statelessVersion = "2026-07-28";
constexpr std::size_t longestArgument = 1024;
constexpr int freshMs = 0; ///< others write into the workspace meanwhile

/// Keys of _meta that the protocol reserves.
constexpr const char *versionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char *capabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char *serverKey = "io.modelcontextprotocol/serverInfo";

/// What a request says of itself: a version in its _meta, or nothing.
std::optional<json> statedVersion(const Request &request)
{
    const auto meta = request.params.find("_meta");
    if (meta == request.params.end() || !meta->is_object() || !meta->contains(versionKey))
        return std::nullopt;
    return meta->at(versionKey);
}

bool isAtLeast(const std::string &version, std::string_view other)
{
    return version >= other;
}

json resultOf(const ToolResult &result, const std::string &version)
{
    json out{{"content", {{{"type", "text"}, {"text", result.text}}}}, {"isError", result.isError}};
    if (!result.structured.is_null() && isAtLeast(version, "2025-06-18"))
        out["structuredContent"] = result.structured;
    return out;
}

json requiredText(const json &params, const char *key)
{
    const auto found = params.find(key);
    return found != params.end() && found->is_string() ? *found : json();
}

} // namespace

const std::vector<std::string> &protocolVersions()
{
    static const std::vector<std::string> versions{statelessVersion, "2025-11-25", "2025-06-18", "2025-03-26",
                                                   "2024-11-05"};
    return versions;
}

/// Answers of one batch: sent together when the last is there.
struct Server::Batch {
    std::mutex mutex;
    json answers = json::array();
    std::size_t open = 0;
};

Server::Server(ServerInfo info, std::vector<Tool> tools, Send send, Offers offers)
    : m_info(std::move(info))
    , m_tools(std::move(tools))
    , m_offers(std::move(offers))
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

void Server::receive(std::string_view line, std::string_view tail)
{
    if (line.find_first_not_of(" \t\r\n") == std::string_view::npos)
        return;
    const Incoming incoming = parseLine(line, tail);
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
    std::string version = m_version;
    if (const auto stated = statedVersion(request)) {
        if (*stated != statelessVersion) {
            const std::string asked =
                stated->is_string() ? stated->get<std::string>().substr(0, 80) : std::string();
            answer(errorMessage(request.id, unsupportedVersion,
                                "This server does not speak the version '" + asked + "' of the protocol.",
                                {{"supported", protocolVersions()}, {"requested", asked}}));
            return;
        }
        if (!request.params.at("_meta").value(capabilitiesKey, json()).is_object()) {
            answer(
                errorMessage(request.id, invalidParams,
                             "'_meta' of a request has the object '" + std::string(capabilitiesKey) + "'."));
            return;
        }
        version = statelessVersion;
    }
    if (request.method == "initialize")
        answer(initialize(request));
    else if (request.method == "ping" && version.empty()) // before a session too
        answer(resultMessage(request.id, json::object()));
    else if (version.empty())
        answer(errorMessage(request.id, invalidRequest,
                            "The first request is 'initialize', or every request names its version."));
    else if (request.method == "tools/call")
        callTool(request, version, answer);
    else
        answer(answerOf(request, version));
}

json Server::answerOf(const Request &request, const std::string &version) const
{
    const std::string &method = request.method;
    const bool isList = method.ends_with("/list");
    try {
        if (isList && request.params.contains("cursor"))
            return errorMessage(request.id, invalidParams,
                                "All of it is on the first page: there is no cursor.");
        if (method == "ping")
            return result(request, json::object(), version);
        if (method == "server/discover" && version == statelessVersion)
            return result(request, discover(), version, true);
        if (method == "tools/list")
            return result(request, toolList(version), version, true);
        if (m_offers.hasResources() && method == "resources/list")
            return result(request, resourceList(), version, true);
        if (m_offers.hasResources() && method == "resources/templates/list") {
            json list = json::array();
            for (const ResourceTemplate &one : m_offers.templates)
                list.push_back({{"uriTemplate", one.uriTemplate},
                                {"name", one.name},
                                {"title", one.title},
                                {"description", one.description},
                                {"mimeType", one.mimeType}});
            return result(request, {{"resourceTemplates", list}}, version, true);
        }
        if (m_offers.hasResources() && method == "resources/read")
            return readResource(request, version);
        if (!m_offers.prompts.empty() && method == "prompts/list") {
            json list = json::array();
            for (const Prompt &prompt : m_offers.prompts) {
                json arguments = json::array();
                for (const PromptArgument &argument : prompt.arguments)
                    arguments.push_back({{"name", argument.name},
                                         {"description", argument.description},
                                         {"required", argument.isRequired}});
                list.push_back({{"name", prompt.name},
                                {"title", prompt.title},
                                {"description", prompt.description},
                                {"arguments", arguments}});
            }
            return result(request, {{"prompts", list}}, version, true);
        }
        if (!m_offers.prompts.empty() && method == "prompts/get")
            return getPrompt(request, version);
    } catch (const std::exception &problem) {
        return errorMessage(request.id, internalError,
                            "'" + method.substr(0, 80) + "' failed: " + problem.what() + '.');
    }
    return errorMessage(request.id, methodNotFound,
                        "This server has no method '" + method.substr(0, 80) + "'.");
}

json Server::result(const Request &request, json result, const std::string &version, bool isList) const
{
    if (version == statelessVersion) {
        result["resultType"] = "complete";
        result["_meta"][serverKey] = {
            {"name", m_info.name}, {"title", m_info.title}, {"version", m_info.version}};
        if (isList) {
            result["ttlMs"] = freshMs;
            result["cacheScope"] = "private";
        }
    }
    return resultMessage(request.id, std::move(result));
}

json Server::capabilities() const
{
    json out{{"tools", {{"listChanged", false}}}};
    if (m_offers.hasResources())
        out["resources"] = {{"listChanged", false}, {"subscribe", false}};
    if (!m_offers.prompts.empty())
        out["prompts"] = {{"listChanged", false}};
    return out;
}

json Server::discover() const
{
    return {{"supportedVersions", protocolVersions()},
            {"capabilities", capabilities()},
            {"instructions", m_info.instructions}};
}

json Server::resourceList() const
{
    json list = json::array();
    for (const Resource &one : m_offers.resources())
        list.push_back({{"uri", one.uri},
                        {"name", one.name},
                        {"title", one.title},
                        {"description", one.description},
                        {"mimeType", one.mimeType}});
    return {{"resources", list}};
}

json Server::readResource(const Request &request, const std::string &version) const
{
    const json uri = requiredText(request.params, "uri");
    if (uri.is_null())
        return errorMessage(request.id, invalidParams, "'uri' is a string.");
    const auto &address = uri.get_ref<const std::string &>();
    const std::optional<ResourceText> text =
        address.size() <= longestArgument ? m_offers.read(address) : std::nullopt;
    if (!text)
        return errorMessage(request.id, version == statelessVersion ? invalidParams : resourceNotFound,
                            "There is no resource '" + address.substr(0, 200)
                                + "'; resources/list names them.");
    return result(request,
                  {{"contents", {{{"uri", address}, {"mimeType", text->mimeType}, {"text", text->text}}}}},
                  version, true);
}

json Server::getPrompt(const Request &request, const std::string &version) const
{
    const json name = requiredText(request.params, "name");
    const auto prompt = std::find_if(m_offers.prompts.begin(), m_offers.prompts.end(),
                                     [&](const Prompt &one) { return json(one.name) == name; });
    if (prompt == m_offers.prompts.end())
        return errorMessage(request.id, invalidParams,
                            "There is no prompt of that name; prompts/list has them.");
    std::map<std::string, std::string> arguments;
    const json given = request.params.value("arguments", json::object());
    for (const PromptArgument &argument : prompt->arguments) {
        const auto found = given.is_object() ? given.find(argument.name) : given.end();
        const bool isText = found != given.end() && found->is_string()
                            && found->get_ref<const std::string &>().size() <= longestArgument;
        if (isText)
            arguments[argument.name] = found->get<std::string>();
        else if (argument.isRequired || found != given.end())
            return errorMessage(request.id, invalidParams,
                                "The prompt " + prompt->name + " takes '" + argument.name
                                    + "', a string of at most 1,024 bytes.");
    }
    std::string problem;
    const std::string text = prompt->run(arguments, problem);
    if (!problem.empty())
        return errorMessage(request.id, invalidParams, problem);
    const json message{{"role", "user"}, {"content", {{"type", "text"}, {"text", text}}}};
    return result(request, {{"description", prompt->description}, {"messages", json::array({message})}},
                  version);
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
    // The newest has no sessions.
    const std::vector<std::string> &known = protocolVersions();
    const auto asked = std::find(known.begin() + 1, known.end(), version.get_ref<const std::string &>());
    m_version = asked == known.end() ? known.at(1) : *asked;
    json server{{"name", m_info.name}, {"version", m_info.version}};
    if (isAtLeast(m_version, "2025-06-18"))
        server["title"] = m_info.title;
    return resultMessage(request.id, {{"protocolVersion", m_version},
                                      {"capabilities", capabilities()},
                                      {"serverInfo", server},
                                      {"instructions", m_info.instructions}});
}

json Server::toolList(const std::string &version) const
{
    json list = json::array();
    for (const Tool &tool : m_tools) {
        json entry{{"name", tool.name}, {"description", tool.description}, {"inputSchema", tool.inputSchema}};
        if (isAtLeast(version, "2025-03-26"))
            entry["annotations"] = {{"title", tool.title},
                                    {"readOnlyHint", tool.isReadOnly},
                                    {"destructiveHint", false},
                                    {"openWorldHint", false}};
        if (isAtLeast(version, "2025-06-18")) {
            entry["title"] = tool.title;
            if (!tool.outputSchema.is_null())
                entry["outputSchema"] = tool.outputSchema;
        }
        list.push_back(std::move(entry));
    }
    return {{"tools", list}};
}

void Server::callTool(const Request &request, const std::string &version, const Answer &answer)
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
        answer(result(request, resultOf(toolError(*problem), version), version));
        return;
    }
    if (tool->isLong)
        startLongCall(*tool, request, arguments, version, answer);
    else
        answer(result(request,
                      resultOf(runGuarded(*tool, arguments, {{}, progressOf(request, version)}), version),
                      version));
}

void Server::startLongCall(const Tool &tool, const Request &request, const json &arguments,
                           const std::string &version, const Answer &answer)
{
    const std::string key = written(request.id);
    std::stop_source stop;
    {
        const std::lock_guard lock(m_flying);
        if (m_calls.size() >= mostCalls) {
            answer(result(request,
                          resultOf(toolError("Sixteen calls are waiting already: try again later."), version),
                          version));
            return;
        }
        if (!m_calls.emplace(key, stop).second) {
            answer(errorMessage(request.id, invalidRequest, "A call with this id is in flight."));
            return;
        }
    }
    m_queue->add([this, &tool, request, arguments, version, answer, key, stop] {
        ToolResult made;
        if (!stop.stop_requested())
            made = runGuarded(tool, arguments, {stop.get_token(), progressOf(request, version)});
        {
            const std::lock_guard lock(m_flying);
            m_calls.erase(key);
        }
        answer(stop.stop_requested() ? json() : result(request, resultOf(made, version), version));
    });
}

std::function<void(double, const std::string &)> Server::progressOf(const Request &request,
                                                                    const std::string &version)
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
    return
        [this, token, version, state = std::make_shared<State>()](double fraction, const std::string &text) {
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
            if (isAtLeast(version, "2025-03-26"))
                params["message"] = text;
            send(notificationMessage("notifications/progress", params));
        };
}

} // namespace klineage::mcp
