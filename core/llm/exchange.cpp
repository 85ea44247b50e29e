// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/jsonlines.h"
#include "core/llm/author.h"
#include "core/llm/messagejson.h"

#include <limits>

namespace klineage::llm {

using files::JsonReader;
using nlohmann::json;

std::string writeExchange(const Exchange &exchange)
{
    json out{{"number", exchange.number},
             {"time", exchange.time},
             {"provider", exchange.provider},
             {"fingerprint", exchange.fingerprint},
             {"request", toJson(exchange.request)},
             {"reply", toJson(exchange.reply)},
             {"micro_dollars", microDollars(exchange.dollars)}};
    if (!exchange.reservation.empty())
        out["reservation"] = exchange.reservation;
    return dumped(out);
}

Result<Exchange> parseExchange(std::string_view line, const std::string &where)
{
    return files::parseJsonLine(line, where, [](const json &value) {
        JsonReader reader(value, {});
        Exchange exchange;
        exchange.number = static_cast<int>(readCount(reader, "number", std::numeric_limits<int>::max()));
        exchange.time = reader.text("time", 64);
        exchange.provider = reader.text("provider", 64);
        exchange.fingerprint = reader.text("fingerprint", 64);
        exchange.request = readRequest(reader.require("request"), reader.pathOf("request"));
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
    for (const files::Line &line : lines->lines) {
        const std::string where = file.string() + ':' + std::to_string(line.number);
        Result<Exchange> exchange = parseExchange(line.text, where);
        if (!exchange)
            return tl::unexpected(exchange.error());
        const std::size_t expected = exchanges.size() + 1;
        if (exchange->number != static_cast<int>(expected))
            return fail(ErrorCode::InvalidInput, where + ":1: the exchange has the number "
                                                     + std::to_string(exchange->number) + "; "
                                                     + std::to_string(expected) + " was expected.");
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
