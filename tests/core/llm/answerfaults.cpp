// SPDX-License-Identifier: GPL-3.0-or-later
// Answers that are no replies: what their status says, and what a person reads of their bodies. A refusal costs nothing.
#include "tests/core/llm/modelfaults.h"

using namespace klineage;
using namespace klineage::llm;
using namespace faults;

namespace {

constexpr ErrorCode unavailable = ErrorCode::Unavailable;

Circumstances times(int count)
{
    Circumstances when;
    when.times = count;
    return when;
}

ServerAnswer withHeader(ServerAnswer answer, const std::string &name, const std::string &value)
{
    answer.headers.push_back({name, value});
    return answer;
}

void addStatuses(FaultTable &table)
{
    const auto always = [](const ServerAnswer &answer) { return [answer](bool) { return answer; }; };
    const auto no = [&](int status, const std::string &type, const std::string &message) {
        return always(answered(errorBody(type, message), status));
    };
    table.both("400", no(400, "invalid_request_error", "too long"),
               refused(ErrorCode::InvalidInput, "(400, invalid_request_error): too long."));
    table.both("401 that repeats the key", no(401, "authentication_error", "bad key " + key),
               refused(unavailable, "(401, authentication_error): bad key [key]."));
    table.both("402", no(402, "billing", "Pay first."), refused(unavailable, "(402, billing): Pay first."));
    table.both("403", no(403, "", "not you, " + key), refused(unavailable, "(403): not you, [key]."));
    table.both("404", no(404, "not_found_error", "model: nope"),
               refused(ErrorCode::NotFound, "(404, not_found_error): model: nope."));
    table.both("413", no(413, "request_too_large", "Too much"),
               refused(ErrorCode::InvalidInput, "(413, request_too_large): Too much."));
    table.both("418, a page that ends in the key where it is cut",
               always(answered("<html>" + std::string(474, 'x') + key, 418)),
               refused(unavailable, "refused the request (418)."));
    table.both("422", no(422, "", "no such field"), refused(ErrorCode::InvalidInput, "no such field."));
    table.both("429 that no waiting mends", no(429, "insufficient_quota", "pay"),
               refused(unavailable, "(429, insufficient_quota): pay."));
    for (const int status : {408, 409, 429, 500, 502, 503, 504, 529}) {
        const std::string number = std::to_string(status);
        table.both(number + " once", no(status, "", "Wait."),
                   keptAfter(1, "(" + number + "): Wait. It is asked again in "), times(1));
        table.both(number + " for ever", no(status, "", "Wait."),
                   refusedThrice(unavailable,
                                 "(" + number + "): Wait. It was sent 3 times, with pauses in between."));
    }
    for (const char *wait :
         {"1", "86400", "99999999999999999999999", "-5", "1.5", "soon", "Sun, 06 Nov 2094 08:49:37 GMT",
          "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 99 Nov 2094 99:99:99 GMT"})
        table.both(std::string("429 with Retry-After ") + wait,
                   always(withHeader(answered("{}", 429), "Retry-After", wait)),
                   keptAfter(2, "(3 of 3); nothing was charged."), times(2));
}

void addBodiesOfErrors(FaultTable &table)
{
    const auto says = [&](const std::string &name, const std::string &body, const std::string &said) {
        table.both(
            "500, its body " + name, [body](bool) { return answered(body, 500); },
            refusedThrice(unavailable, "(500" + said));
    };
    says("empty", "", ").");
    says("a page", "<html><body>Bad gateway " + key, ").");
    says("an empty object", "{}", ").");
    says("a number", "7", ").");
    says("cut", R"({"error":{"message":"half)", ").");
    says("nested deeply", std::string(60'000, '['), ").");
    const auto around = [](std::size_t depth) {
        return R"({"more":)" + std::string(depth, '[') + std::string(depth, ']') + R"(,"error":"Full"})";
    };
    says("nested around its error", around(200), "): Full.");
    says("nested too deeply around its error", around(9'000), ").");
    says("with a byte order mark", "\xef\xbb\xbf" + errorBody("full", "No room"), ", full): No room.");
    says("with bytes that are no UTF-8", "{\"error\":\"caf\xe9 shut\"}", "): caf\xef\xbf\xbd shut.");
    says("with control characters", R"({"error":{"type":"a\u001b[2J","message":"b\u0000\u0007c"}})",
         ", a [2J): b  c.");
    says("a NUL", std::string("\0\0\x1b[2J", 6), ").");
    says("a list", "[" + errorBody("full", "No room") + "]", ", full): No room.");
    says("an error of the older kind", R"({"object":"error","message":"No room","type":"full","code":500})",
         ", full): No room.");
    says("an error of wrong types", R"({"error":{"type":7,"message":["no"],"code":{}}})", ").");
    says("a message that is cut in the key", errorBody("full", std::string(1980, 'x') + key), ", full): xxx");
    says("longer than anything", std::string(300'000, 'x'), ").");
    ServerAnswer endless = sentRaw("HTTP/1.1 500 Said\r\n\r\n");
    endless.endless = std::string(10'000, 'x');
    table.both(
        "500, its body endless", [endless](bool) { return endless; }, refusedThrice(unavailable, "(500)."));
    ServerAnswer cut = answered(errorBody("full", "No room"), 500);
    cut.dropAfter = 20;
    table.both(
        "500, its body not all there", [cut](bool) { return cut; }, refusedThrice(unavailable, "(500)."));
}

void addOddStatuses(FaultTable &table)
{
    for (const int status : {301, 302, 303, 307, 308}) {
        const std::string number = std::to_string(status);
        const std::string said = "sent the request elsewhere (" + number + "), which is not followed";
        // Where nobody could be asked: following it would be another error.
        for (const char *place : {"http://192.0.2.1/v1/messages", "/v1/messages", "/v1/chat/completions",
                                  "file:///etc/passwd", ""})
            table.both(
                number + " to '" + place + "'",
                [=](bool) { return withHeader(answered("", status), "Location", place); },
                refused(unavailable, said));
    }
    table.both(
        "304", [](bool) { return answered("", 304); }, refused(unavailable, "elsewhere (304)"));
    // Not refused: whoever says so has taken the request.
    table.both(
        "201 with a reply", [](bool anthropic) { return answered(sound(anthropic), 201); }, kept());
    table.both(
        "204", [](bool) { return answered("", 204); },
        broken(ErrorCode::Protocol, "ended its answer before the reply was whole."));
    for (const char *interim : {"100 Continue", "103 Early Hints"}) {
        table.both(
            std::string(interim) + " and no more",
            [=](bool) { return sentRaw(std::string("HTTP/1.1 ") + interim + "\r\n\r\n"); },
            broken(ErrorCode::Protocol, ""));
        table.both(
            std::string(interim) + " before the answer",
            [=](bool anthropic) {
                return sentRaw(std::string("HTTP/1.1 ") + interim + "\r\nrequest-id: no\r\n\r\n"
                               + "HTTP/1.1 200 Said\r\nrequest-id: of " + key + "\r\n\r\n"
                               + sound(anthropic));
            },
            kept());
    }
}

} // namespace

void addFaultsOfAnswers(FaultTable &table)
{
    addStatuses(table);
    addBodiesOfErrors(table);
    addOddStatuses(table);
}
