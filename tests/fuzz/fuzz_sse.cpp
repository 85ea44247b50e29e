// SPDX-License-Identifier: GPL-3.0-or-later
// The stream parser, cut in different places, and both APIs' decoders behind it.
#include "core/llm/network/replyreader.h"
#include "tests/fuzz/target.h"

#include <algorithm>

using namespace klineage;
using namespace klineage::llm;

namespace {

struct Seen {
    std::vector<std::string> events;
    std::string text;
    std::string streamed;
    bool whole = false;
    bool failed = false;
    Usage usage;
};

Seen decode(const Dialect &dialect, std::string_view bytes, std::size_t piece)
{
    Seen seen;
    const auto decoder = dialect.decoder();
    SseParser parser(4096);
    while (!bytes.empty() && !seen.failed && !seen.whole) {
        const Status fed = parser.feed(bytes.substr(0, piece), [&](const SseEvent &event) -> Status {
            seen.events.push_back(event.name + '=' + event.data);
            if (seen.whole)
                return {};
            const Result<bool> taken =
                decoder->take(event, [&](std::string_view text) { seen.streamed += text; });
            if (!taken)
                return tl::unexpected(taken.error());
            seen.whole = *taken;
            return {};
        });
        seen.failed = !fed;
        bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    seen.text = decoder->reply().text;
    seen.usage = decoder->reply().usage;
    require(isSane(seen.usage), "usage is sane");
    require(seen.text == seen.streamed, "what was streamed is the reply");
    return seen;
}

/// The text of the whole reply that a body makes, if it makes one.
std::optional<std::string> read(const Dialect &dialect, std::string_view bytes, std::size_t piece)
{
    const std::string key = "data-secret";
    std::string heard;
    ReplyReader reader(dialect, key, [&](std::string_view text) { heard += text; });
    bool whole = false;
    while (!bytes.empty() && !whole) {
        const Result<bool> taken = reader.take(bytes.substr(0, piece));
        if (!taken)
            return {};
        whole = *taken;
        bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    if (!reader.finish())
        return {};
    const Reply reply = reader.takeReply();
    require(heard == reply.text, "what was heard of a body is the reply");
    require(heard.find(key) == std::string::npos, "the key is not heard");
    return reply.text;
}

} // namespace

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3,"
        "\"output_tokens\":1}}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n"
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n"
        "data: {\"type\":\"message_stop\"}\n\n",
        ": comment\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}],\"usage\":"
        "{\"prompt_tokens\":3,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":1}}}\r\n\r\ndata: [DONE]\r\n\r\n",
        "data: {\"error\":{\"message\":\"boom\",\"type\":\"x\"}}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"},\"x\",{\"type\":\"thinking\"}]},"
        "\"finish_reason\":\"\"}]}\n\ndata: [DONE]\n\n",
        "{\"id\":\"c\",\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"refusal\":null},"
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}",
        "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":\"end_turn\","
        "\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}"};
    target.words = {"\n",       "\r",        "\r\n", "\n\n", "data: ",      "event: ", "id: ", "[DONE]",
                    "{",        "}",         "null", "-1",   "1e99",        "\"",      ":",    "\xef\xbb\xbf",
                    "\"text\"", "\"usage\"", "[[[[", "]",    "data-secret", "\\ud83d"};
    target.runs = 8'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char *>(data), size);
    for (const auto &dialect : {makeAnthropicDialect(), makeOpenAiDialect(true)}) {
        const Seen whole = decode(*dialect, bytes, size + 1);
        const auto body = read(*dialect, bytes, size + 1);
        const auto decoder = dialect->decoder();
        std::string heard;
        const Status taken = decoder->takeWhole(bytes, [&](std::string_view text) { heard += text; });
        require(!taken || heard == decoder->reply().text, "what was heard of a whole answer is the reply");
        require(isSane(decoder->reply().usage), "the usage of a whole answer is sane");
        for (const std::size_t piece : {std::size_t{1}, std::size_t{7}}) {
            require(read(*dialect, bytes, piece) == body, "a body is the same wherever it is cut");
            const Seen cut = decode(*dialect, bytes, piece);
            require(cut.text == whole.text && cut.whole == whole.whole && cut.usage == whole.usage,
                    "the reply is the same wherever the bytes are cut");
            require(cut.events.size() <= whole.events.size()
                        && std::equal(cut.events.begin(), cut.events.end(), whole.events.begin()),
                    "the events are the same wherever the bytes are cut");
        }
    }
    return 0;
}
