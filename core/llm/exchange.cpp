// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/jsonlines.h"
#include "core/llm/author.h"
#include "core/llm/messagejson.h"
#include "core/llm/requestjson.h"

#include <limits>

namespace klineage::llm {

using files::OrderedJson;
using files::JsonReader;
using nlohmann::json;

namespace {

/// Requests of one transcript, all of them written out.
constexpr std::size_t maxTranscriptBytes = std::size_t{1} << 30;

std::size_t bytesOf(const Request &request)
{
    std::size_t bytes = request.system.size();
    for (const Message &message : request.messages)
        bytes += message.text.size();
    return bytes;
}

} // namespace

std::string writeExchange(const Exchange &exchange, std::span<const Exchange> before)
{
    OrderedJson out{{"number", exchange.number},
                    {"time", exchange.time},
                    {"provider", exchange.provider},
                    {"request", writeRequest(exchange.request, before)},
                    {"fingerprint", exchange.fingerprint},
                    {"reply", toJson(exchange.reply)},
                    {"micro_dollars", microDollars(exchange.dollars)}};
    files::setUnlessEmpty(out, "reservation", exchange.reservation);
    return files::oneLine(out);
}

Result<Exchange> parseExchange(std::string_view line, const std::string &where,
                               std::span<const Exchange> before)
{
    return files::parseJsonLine(line, where, [&](const json &value) {
        JsonReader reader(value, {});
        Exchange exchange;
        exchange.number = static_cast<int>(readCount(reader, "number", std::numeric_limits<int>::max()));
        exchange.time = reader.text("time", 64);
        exchange.provider = reader.text("provider", 64);
        exchange.request = readRequest(reader.require("request"), reader.pathOf("request"), before);
        exchange.fingerprint = reader.text("fingerprint", 64);
        exchange.reply = readReply(reader.require("reply"), reader.pathOf("reply"));
        exchange.dollars = static_cast<double>(readCount(reader, "micro_dollars", maxLedgerMicro)) / 1e6;
        exchange.reservation = reader.optionalText("reservation", 64);
        reader.finish();
        if (exchange.fingerprint != fingerprint(exchange.request))
            reader.refuse("fingerprint", "is not the request's; was the transcript edited?");
        return exchange;
    });
}

Result<std::vector<Exchange>> readTranscript(const std::filesystem::path &file)
{
    const Result<files::Lines> lines = files::readLines(file);
    if (!lines)
        return tl::unexpected(lines.error());
    std::vector<Exchange> exchanges;
    std::size_t bytes = 0;
    for (const files::Line &line : lines->lines) {
        const std::string where = file.string() + ':' + std::to_string(line.number);
        Result<Exchange> exchange = parseExchange(line.text, where, exchanges);
        if (!exchange)
            return tl::unexpected(exchange.error());
        const std::size_t expected = exchanges.size() + 1;
        if (exchange->number != static_cast<int>(expected))
            return fail(ErrorCode::InvalidInput, where + ":1: the exchange has the number "
                                                     + std::to_string(exchange->number) + "; "
                                                     + std::to_string(expected) + " was expected.");
        bytes += bytesOf(exchange->request);
        if (bytes > maxTranscriptBytes)
            return fail(ErrorCode::InvalidInput, where + ":1: the requests up to here have more than "
                                                     + std::to_string(maxTranscriptBytes) + " bytes.");
        exchanges.push_back(std::move(*exchange));
    }
    return exchanges;
}

Status checkSamePrompt(const Exchange &recorded, const Request &request, const std::filesystem::path &file)
{
    const std::string asked = fingerprint(request);
    if (recorded.fingerprint == asked)
        return {};
    return fail(ErrorCode::Conflict,
                "Exchange " + std::to_string(recorded.number) + " of '" + file.string()
                    + "' answered another prompt: " + firstDifference(recorded.request, request) + '.',
                "Recorded: " + recorded.fingerprint + "\nAsked now: " + asked);
}

} // namespace klineage::llm
