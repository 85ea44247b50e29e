// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/author.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::llm;

namespace {

Exchange firstExchange()
{
    Exchange exchange;
    exchange.number = 1;
    exchange.time = "2026-11-21T12:00:00.000Z";
    exchange.provider = "anthropic";
    exchange.request.purpose = "load";
    exchange.request.model = "claude";
    exchange.request.system = "You write kernels.";
    exchange.request.messages = {
        {Role::User, "first", true}, {Role::Assistant, "second", false}, {Role::User, "third", false}};
    exchange.fingerprint = fingerprint(exchange.request);
    exchange.reply.text = "```c\nint x;\n```";
    exchange.reply.usage = {1, 2, 3, 4};
    exchange.reply.seconds = 1.5;
    exchange.dollars = 0.0123;
    exchange.reservation = "r1";
    return exchange;
}

} // namespace

FuzzTarget fuzzTarget()
{
    const std::vector<Exchange> before{firstExchange()};
    Exchange exchange = firstExchange();
    FuzzTarget target;
    target.seeds = {writeExchange(exchange), writeExchange(exchange, before)};
    exchange.request.temperature = 0.5;
    exchange.fingerprint = fingerprint(exchange.request);
    exchange.reply.usageKnown = false;
    target.seeds.push_back(writeExchange(exchange));
    exchange.request.messages.push_back({Role::Assistant, exchange.reply.text, false});
    exchange.request.messages.push_back({Role::User, "fourth", true});
    exchange.fingerprint = fingerprint(exchange.request);
    target.seeds.push_back(writeExchange(exchange, before));
    target.words = {"{",
                    "}",
                    "\"",
                    ",",
                    "null",
                    "true",
                    "1e9",
                    "-1",
                    "\"cache\":true",
                    "\"temperature\":1",
                    "\"after\":1,",
                    "\"keep\":2,",
                    "\"cache\":[1],",
                    "\\u0000",
                    "\xff"};
    target.runs = 8'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    static const std::vector<Exchange> before{firstExchange()};
    const std::string_view line(reinterpret_cast<const char *>(data), size);
    const Result<Exchange> exchange = parseExchange(line, "transcript.jsonl:2", before);
    if (!exchange) {
        requireLocated(exchange.error(), "transcript.jsonl:2:");
        return 0;
    }
    require(exchange->fingerprint == fingerprint(exchange->request), "the fingerprint is the request's");
    for (const std::vector<Exchange> &above : {before, std::vector<Exchange>()}) {
        const std::string written = writeExchange(*exchange, above);
        const Result<Exchange> again = parseExchange(written, "written", above);
        require(again && writeExchange(*again, above) == written, "writing and reading keep the exchange");
    }
    return 0;
}
