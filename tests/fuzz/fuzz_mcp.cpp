// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lines of an MCP client, which may send anything: every request is answered once, with valid JSON, and nothing else is said.
#include "core/interop/mcp/server.h"
#include "tests/fuzz/target.h"

using namespace klineage::mcp;
using nlohmann::json;

namespace {

const std::string initialize =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}})";

Tool echo()
{
    const json feature{{"type", "object"},
                       {"properties", {{"locus", {{"type", "string"}}}, {"n", {{"type", "integer"}}}}},
                       {"required", {"locus"}}};
    return {"echo",
            "Echo",
            "",
            {{"type", "object"},
             {"properties",
              {{"text", {{"type", "string"}, {"maxLength", 20}}},
               {"list", {{"type", "array"}, {"items", feature}}},
               {"map", {{"type", "object"}, {"additionalProperties", {{"type", "number"}}}}}}}},
            true,
            false,
            [](const json &arguments, const Call &) { return toolData(arguments); }};
}

} // namespace

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        initialize,
        R"({"jsonrpc":"2.0","id":"a","method":"ping"})",
        R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}})",
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}})",
        R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi","list":[{"locus":"k","n":3}],"map":{"a":1.5}},"_meta":{"progressToken":4}}})",
        R"([{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","method":"x"}])",
        R"({"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"x"}})"};
    target.words = {"{",
                    "}",
                    "[",
                    "]",
                    "\"",
                    ":",
                    ",",
                    "null",
                    "true",
                    "1e999",
                    "-1",
                    "\"id\":",
                    "\"params\":",
                    "\"arguments\":",
                    "\"_meta\":",
                    "\xff",
                    "\\ud800",
                    "\"jsonrpc\":\"2.0\"",
                    "\"method\":\"tools/call\"",
                    "18446744073709551616"};
    target.runs = 2'000; // each starts and ends a thread
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    std::size_t wanted = 0;
    bool isBatch = false;
    if (text.find_first_not_of(" \t\r\n") != std::string_view::npos) {
        const Incoming incoming = parseLine(text);
        require(!incoming.messages.empty(), "a line is at least one message");
        isBatch = incoming.isBatch;
        for (const Message &message : incoming.messages)
            wanted += std::holds_alternative<Request>(message) || std::holds_alternative<Refusal>(message);
    }
    std::vector<json> sent;
    {
        Server server({"fuzz", "Fuzz", "1", ""}, {echo()}, [&](const std::string &line) {
            require(line.find('\n') == std::string::npos, "a message is one line");
            sent.push_back(json::parse(line));
        });
        server.receive(initialize);
        sent.clear();
        server.receive(text);
    }
    if (isBatch)
        require(sent.size() == (wanted > 0 ? 1 : 0) && (sent.empty() || sent[0].size() == wanted),
                "a batch is answered at once and in full");
    else
        require(sent.size() == wanted, "a request is answered once");
    for (const json &line : sent) {
        for (const json &one : isBatch ? line : json::array({line}))
            require(one.at("jsonrpc") == "2.0" && (one.contains("result") != one.contains("error")),
                    "an answer is a result or an error");
    }
    return 0;
}
