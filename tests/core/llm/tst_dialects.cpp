// SPDX-License-Identifier: GPL-3.0-or-later
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

    /// A stream that ends anywhere before its end is not taken for whole (chat completions may lack the "[DONE]").
    void aCutStreamIsNotWhole()
    {
        const std::string stream = anthropicStream("0123456789", usage);
        for (std::size_t end = 0; end + 1 < stream.size(); ++end) {
            const Decoded decoded = decode(true, {std::string_view(stream).substr(0, end)});
            QVERIFY(decoded.whole);
            QVERIFY(!*decoded.whole && !decoded.wholeAtEnd);
        }
        const std::string chunks = openAiStream("0123456789", usage);
        const std::size_t finish = chunks.find("\"finish_reason\":\"stop\"");
        for (std::size_t end = 0; end < finish; ++end) {
            const Decoded decoded = decode(false, {std::string_view(chunks).substr(0, end)});
            QVERIFY(decoded.whole && !*decoded.whole && !decoded.wholeAtEnd);
        }
        const Decoded unsaid =
            decode(false, {std::string_view(chunks).substr(0, chunks.find("data: [DONE]"))});
        QVERIFY(unsaid.wholeAtEnd && unsaid.reply.usageKnown);
    }

    void stopReasons_data()
    {
        QTest::addColumn<bool>("anthropic");
        QTest::addColumn<QString>("said");
        QTest::addColumn<QString>("stop");
        for (const auto &[said, stop] : {std::pair{"end_turn", "end"},
                                         {"stop_sequence", "end"},
                                         {"max_tokens", "max_tokens"},
                                         {"refusal", "refusal"},
                                         {"tool_use", "other"},
                                         {"new_one", "other"}})
            QTest::newRow(said) << true << said << stop;
        for (const auto &[said, stop] : {std::pair{"stop", "end"},
                                         {"length", "max_tokens"},
                                         {"content_filter", "refusal"},
                                         {"tool_calls", "other"},
                                         {"", "other"}})
            QTest::newRow(said) << false << said << stop;
    }
    void stopReasons()
    {
        QFETCH(bool, anthropic);
        QFETCH(QString, said);
        const std::string reason = said.toStdString();
        const std::string stream =
            anthropic ? anthropicStream("x", usage, reason) : openAiStream("x", usage, reason);
        QTEST(QString(toString(decode(anthropic, {stream}).reply.stop)), "stop");
    }

    void wrongUsageIsUnknown_data()
    {
        QTest::addColumn<bool>("anthropic");
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        for (const char *wrong :
             {"-1", "1.5", "\"7\"", "1e30", "99999999999999999999", "[]", "true", "null"}) {
            QTest::addRow("anthropic input %s", wrong)
                << true << "\"input_tokens\":120" << QString("\"input_tokens\":") + wrong;
            QTest::addRow("anthropic output %s", wrong)
                << true << "\"output_tokens\":40" << QString("\"output_tokens\":") + wrong;
            QTest::addRow("openai input %s", wrong)
                << false << "\"prompt_tokens\":150" << QString("\"prompt_tokens\":") + wrong;
            QTest::addRow("openai output %s", wrong)
                << false << "\"completion_tokens\":40" << QString("\"completion_tokens\":") + wrong;
        }
        QTest::newRow("anthropic none") << true << "\"input_tokens\":120,"
                                        << "";
        QTest::newRow("anthropic no output") << true << ",\"usage\":{\"output_tokens\":40}"
                                             << "";
        QTest::newRow("openai none") << false << "\"completion_tokens\":40,"
                                     << "";
        QTest::newRow("more cached than sent") << false << "\"cached_tokens\":30"
                                               << "\"cached_tokens\":151";
    }
    void wrongUsageIsUnknown()
    {
        QFETCH(bool, anthropic);
        QFETCH(QString, from);
        QFETCH(QString, to);
        QString stream =
            QString::fromStdString(anthropic ? anthropicStream("x", usage) : openAiStream("x", usage));
        QVERIFY(stream.contains(from));
        const std::string changed = stream.replace(from, to).toStdString();
        const Decoded decoded = decode(anthropic, {changed});
        QVERIFY(decoded.whole && *decoded.whole);
        QVERIFY(!decoded.reply.usageKnown);
        QCOMPARE(decoded.reply.usage, Usage());
        QCOMPARE(decoded.reply.text, std::string("x"));
    }

    void brokenStreams_data()
    {
        QTest::addColumn<bool>("anthropic");
        QTest::addColumn<QString>("stream");
        QTest::addColumn<QString>("message");
        QTest::newRow("no JSON") << true << "data: {\n\n"
                                 << "is no JSON object.";
        QTest::newRow("array") << true << "data: []\n\n"
                               << "is no JSON object.";
        QTest::newRow("error event")
            << true
            << "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
               "\"message\":\"Overloaded\"}}\n\n"
            << "The server broke off its reply (overloaded_error): Overloaded.";
        QTest::newRow("delta first")
            << true << "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\"}}\n\n"
            << "comes before message_start.";
        QTest::newRow("stop first") << true << "data: {\"type\":\"message_stop\"}\n\n"
                                    << "comes without its message.";
        QTest::newRow("start twice")
            << true
            << QString::fromStdString(anthropicStream("x", usage)).section("event: ping", 0, 0).repeated(2)
            << "there twice.";
        QTest::newRow("chunk no JSON") << false << "data: nothing\n\n"
                                       << "is no JSON object.";
        QTest::newRow("done first") << false << "data: [DONE]\n\n"
                                    << "without a finish reason.";
        QTest::newRow("chunk error")
            << false << "data: {\"error\":{\"message\":\"boom\",\"code\":\"server_error\"}}\n\n"
            << "The server broke off its reply (server_error): boom.";
        QTest::newRow("content of a wrong type")
            << false << "data: {\"choices\":[{\"delta\":{\"content\":7}}]}\n\n"
            << "a piece that is no text.";
        QTest::newRow("a refusal of a wrong type")
            << false << "data: {\"choices\":[{\"delta\":{\"refusal\":{}}}]}\n\n"
            << "a piece that is no text.";
    }
    void brokenStreams()
    {
        QFETCH(bool, anthropic);
        QFETCH(QString, stream);
        QFETCH(QString, message);
        const Decoded decoded = decode(anthropic, {stream.toStdString()});
        QVERIFY(!decoded.whole);
        QVERIFY2(decoded.whole.error().message.find(message.toStdString()) != std::string::npos,
                 decoded.whole.error().message.c_str());
    }

    /// An empty reason in every piece says nothing: only "[DONE]" makes such a reply whole.
    void anEmptyReasonIsNone()
    {
        QString chunks = QString::fromStdString(openAiStream("0123456789", usage, ""));
        chunks.replace("\"finish_reason\":null", "\"finish_reason\":\"\"");
        const std::string stream = chunks.toStdString();
        for (std::size_t end = 0; end < stream.find("data: [DONE]"); end += 7) {
            const Decoded cut = decode(false, {std::string_view(stream).substr(0, end)});
            QVERIFY(cut.whole && !*cut.whole && !cut.wholeAtEnd);
        }
        const Decoded decoded = decode(false, {stream});
        QVERIFY(decoded.whole && *decoded.whole);
        QCOMPARE(decoded.reply.text, std::string("0123456789"));
        QCOMPARE(decoded.reply.stop, StopReason::Other);
    }

    void contentMayBeParts()
    {
        const Decoded decoded = decode(
            false,
            {"data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},"
             "{\"type\":\"text\",\"text\":\"one \"},\"two\"]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"});
        QVERIFY(decoded.whole && *decoded.whole);
        QCOMPARE(decoded.reply.text, std::string("one two"));
        QCOMPARE(decoded.streamed, decoded.reply.text);
        for (const char *wrong : {"[7]", "{\"text\":7}", "[{\"type\":\"text\",\"text\":[]}]"}) {
            const std::string stream =
                "data: {\"choices\":[{\"delta\":{\"content\":" + std::string(wrong) + "}}]}\n\n";
            const Decoded refused = decode(false, {stream});
            QVERIFY(refused.reply.text.empty() || !refused.whole);
        }
    }

    void repliesThatAreNotStreamed_data()
    {
        QTest::addColumn<bool>("anthropic");
        QTest::addColumn<QString>("body");
        QTest::addColumn<QString>("text"); // or the error's
        const QString openAi =
            R"({"id":"c1","model":"m","choices":[{"message":{"content":%1},"finish_reason":"length"}],)"
            R"("usage":{"prompt_tokens":150,"completion_tokens":40,"prompt_tokens_details":{"cached_tokens":30}}})";
        const QString anthropic =
            R"({"type":"message","id":"c1","model":"m","content":%1,"stop_reason":"max_tokens",)"
            R"("usage":{"input_tokens":120,"cache_read_input_tokens":30,"output_tokens":40}})";
        QTest::newRow("openai") << false << openAi.arg("\"hi\"") << "hi";
        QTest::newRow("openai, parts") << false << openAi.arg(R"([{"type":"text","text":"h"},"i"])") << "hi";
        QTest::newRow("anthropic") << true << anthropic.arg(R"([{"type":"text","text":"hi"}])") << "hi";
        QTest::newRow("an error") << false << R"({"error":{"type":"oops","message":"no"}})"
                                  << "The server answered with an error (oops): no.";
        QTest::newRow("something else") << true << R"({"status":"fine"})"
                                        << "The server's answer is neither a stream nor a whole reply.";
        QTest::newRow("cut") << false << openAi.arg("\"hi\"").left(60)
                             << "The server's answer is neither a stream nor a whole reply.";
    }
    void repliesThatAreNotStreamed()
    {
        QFETCH(bool, anthropic);
        QFETCH(QString, body);
        QFETCH(QString, text);
        const auto decoder = dialectOf(anthropic)->decoder();
        std::string heard;
        const Status taken =
            decoder->takeWhole(body.toStdString(), [&](std::string_view piece) { heard += piece; });
        if (!taken) {
            QCOMPARE(QString::fromStdString(taken.error().message), text);
            return;
        }
        QCOMPARE(QString::fromStdString(decoder->reply().text), text);
        QCOMPARE(heard, decoder->reply().text);
        QCOMPARE(decoder->reply().stop, StopReason::MaxTokens);
        QCOMPARE(decoder->reply().usage, usage);
        QVERIFY(decoder->reply().usageKnown);
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

    void endlessRepliesEnd()
    {
        const std::string piece(1000, 'x');
        const std::string event = json{{"choices", {{{"delta", {{"content", piece}}}}}}}.dump();
        std::string stream;
        for (int i = 0; i < 3000; ++i)
            stream += "data: " + event + "\n\n";
        const Decoded decoded = decode(false, {stream});
        QCOMPARE(decoded.whole.error().code, ErrorCode::Protocol);
        QVERIFY(decoded.reply.text.size() <= maxReplyBytes);
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
