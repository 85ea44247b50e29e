// SPDX-License-Identifier: GPL-3.0-or-later
// The bodies that go to servers, and their streams cut anywhere. Streams that go wrong: tst_modelfaults.
#include "core/llm/network/dialect.h"
#include "tests/core/llm/loopbackserver.h"
#include "tests/core/llm/scriptedprovider.h"

#include <QTest>

using namespace klineage;
using namespace klineage::llm;
using nlohmann::json;

namespace {

struct Decoded {
    Result<bool> whole = false;
    bool wholeAtEnd = false;
    Reply reply;
    std::string streamed;
};

std::unique_ptr<Dialect> dialectOf(bool anthropic)
{
    return anthropic ? makeAnthropicDialect() : makeOpenAiDialect(true);
}

Decoded decode(bool anthropic, const std::vector<std::string_view> &pieces)
{
    Decoded result;
    const auto decoder = dialectOf(anthropic)->decoder();
    SseParser parser;
    for (const std::string_view piece : pieces) {
        const Status fed = parser.feed(piece, [&](const SseEvent &event) -> Status {
            result.whole = decoder->take(event, [&](std::string_view text) { result.streamed += text; });
            return result.whole ? Status() : tl::unexpected(result.whole.error());
        });
        if (!fed)
            break;
    }
    result.wholeAtEnd = decoder->isWholeAtEnd();
    result.reply = decoder->reply();
    return result;
}

const Usage usage{120, 30, 0, 40};

} // namespace

class TestDialects : public QObject
{
    Q_OBJECT

private slots:
    void readsTheStreamCutAnywhere_data()
    {
        QTest::addColumn<bool>("anthropic");
        QTest::newRow("anthropic") << true;
        QTest::newRow("openai") << false;
    }
    void readsTheStreamCutAnywhere()
    {
        QFETCH(bool, anthropic);
        const std::string plain = "0123456789";
        const std::string stream = anthropic ? anthropicStream(plain, usage) : openAiStream(plain, usage);
        std::vector<std::string_view> bytes;
        for (std::size_t cut = 0; cut < stream.size(); ++cut) {
            const std::string_view whole = stream;
            bytes.push_back(whole.substr(cut, 1));
            const Decoded decoded = decode(anthropic, {whole.substr(0, cut), whole.substr(cut)});
            QVERIFY(decoded.whole && *decoded.whole);
            QCOMPARE(decoded.reply.text, plain);
            QCOMPARE(decoded.reply.usage, usage);
        }
        const Decoded decoded = decode(anthropic, bytes);
        QCOMPARE(decoded.streamed, plain);
        QVERIFY(decoded.reply.usageKnown);
        QCOMPARE(decoded.reply.model, std::string("model-1-served"));
        QVERIFY(!decoded.reply.requestId.empty());
        QCOMPARE(decoded.reply.stop, StopReason::End);
    }

    /// A stream that ends anywhere before it has said why the reply ends is not taken for whole.
    void aCutStreamIsNotWhole()
    {
        const std::string stream = anthropicStream("0123456789", usage);
        const std::string chunks = openAiStream("0123456789", usage);
        const std::size_t ends[] = {chunks.find("\"finish_reason\":\"stop\""),
                                    stream.find("event: message_stop")};
        for (const bool anthropic : {true, false}) {
            const std::string_view all = anthropic ? stream : chunks;
            for (std::size_t end = 0; end < ends[anthropic ? 1 : 0]; ++end) {
                const Decoded decoded = decode(anthropic, {all.substr(0, end)});
                QVERIFY(decoded.whole && !*decoded.whole && !decoded.wholeAtEnd);
            }
            const std::size_t end = all.find(anthropic ? "event: message_stop" : "data: [DONE]");
            const Decoded unsaid = decode(anthropic, {all.substr(0, end)});
            QVERIFY(unsaid.wholeAtEnd && unsaid.reply.usageKnown);
        }
    }

    void settingsGoIntoTheBody()
    {
        Request request = question("one");
        request.effort = "high";
        request.extraBody = R"({"top_k":20,"temperature":1,"max_tokens":5})";
        request.temperature = 0.5;
        const json openAi = json::parse(makeOpenAiDialect(false)->body(request));
        QVERIFY(openAi["reasoning_effort"] == "high" && openAi["top_k"] == 20);
        QVERIFY(openAi["temperature"] == 0.5 && openAi["max_tokens"] == 1000); // what is there stays
        const json anthropic = json::parse(makeAnthropicDialect()->body(request));
        QVERIFY(anthropic["output_config"]["effort"] == "high" && anthropic["top_k"] == 20);
    }

    void writesAnthropicRequests()
    {
        Request request = question("one");
        request.messages = {{Role::User, "one", true},
                            {Role::Assistant, "two", true},
                            {Role::User, "three", true},
                            {Role::Assistant, "four", true},
                            {Role::User, "five \xff", false}};
        request.temperature = 0.5;
        const auto dialect = makeAnthropicDialect();
        const json body = json::parse(dialect->body(request));
        QVERIFY(body["model"] == "model-1");
        QVERIFY(body["max_tokens"] == 1000);
        QVERIFY(body["stream"] == true);
        QVERIFY(body["temperature"] == 0.5);
        QVERIFY(body["system"][0]["cache_control"]["type"] == "ephemeral");
        // At most four marks: the system prompt's and the last three.
        QVERIFY(!body["messages"][0]["content"][0].contains("cache_control"));
        for (int i = 1; i < 4; ++i)
            QVERIFY(body["messages"][i]["content"][0].contains("cache_control"));
        QVERIFY(!body["messages"][4]["content"][0].contains("cache_control"));
        QVERIFY(body["messages"][1]["role"] == "assistant");
        QVERIFY(body["messages"][4]["content"][0]["text"] == "five \xef\xbf\xbd");
        const std::vector<std::string> headers{"anthropic-version: 2023-06-01", "x-api-key: K"};
        QCOMPARE(dialect->headers("K"), headers);
    }

    void writesOpenAiRequests()
    {
        const auto dialect = makeOpenAiDialect(true);
        const json body = json::parse(dialect->body(question("one")));
        QVERIFY(body["messages"][0]["role"] == "system");
        QVERIFY(body["messages"][1]["content"] == "one");
        QVERIFY(body["stream_options"]["include_usage"] == true);
        QVERIFY(body["max_completion_tokens"] == 1000);
        QVERIFY(!body.contains("temperature") && !body.contains("max_tokens"));
        QVERIFY(json::parse(makeOpenAiDialect(false)->body(question("one")))["max_tokens"] == 1000);
        QCOMPARE(dialect->headers("K"), std::vector<std::string>{"Authorization: Bearer K"});
        QVERIFY(dialect->headers("").empty());
    }
};

QTEST_GUILESS_MAIN(TestDialects)
#include "tst_dialects.moc"
