// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/author.h"
#include "core/llm/makeprovider.h"
#include "core/llm/network/httppost.h"
#include "core/llm/network/httpprovider.h"
#include "tests/core/llm/loopbackserver.h"
#include "tests/core/llm/scriptedprovider.h"

#include "core/files/atomicfile.h"
#include "tests/patience.h"

#include <QDateTime>
#include <QElapsedTimer>
#include <QLocale>
#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <deque>
#include <mutex>

using namespace klineage;
using namespace klineage::llm;

namespace {

const std::string secret = "very-secret-key-0123456789";
const Usage usage{120, 30, 0, 40};

/// A server that answers from a list, then with a sound reply.
struct Script {
    std::mutex mutex;
    std::deque<ServerAnswer> answers;
    std::vector<SeenRequest> seen;

    ServerAnswer next(const SeenRequest &request)
    {
        const std::scoped_lock lock(mutex);
        seen.push_back(request);
        ServerAnswer answer;
        answer.body =
            request.isAnthropic() ? anthropicStream("0123456789", usage) : openAiStream("0123456789", usage);
        if (!answers.empty()) {
            answer = answers.front();
            answers.pop_front();
        }
        return answer;
    }
};

ServerAnswer refusal(int status, const std::string &body = {}, const std::string &retryAfter = {})
{
    ServerAnswer answer;
    answer.status = status;
    answer.body = body;
    if (!retryAfter.empty())
        answer.headers.push_back({"Retry-After", retryAfter});
    return answer;
}

} // namespace

class TestHttpProvider : public QObject
{
    Q_OBJECT

private:
    std::unique_ptr<Script> m_script;
    std::unique_ptr<LoopbackServer> m_server;

    std::unique_ptr<HttpProvider> make(bool anthropic, double idleSeconds = 5) const
    {
        NetworkOptions options;
        options.baseUrl = m_server->url() + (anthropic ? "" : "/v1");
        options.key = [](std::string_view) { return secret; };
        options.paid = true;
        options.retry = {4, 0.001, 0.005, 10};
        options.limits.idleSeconds = idleSeconds;
        auto dialect = anthropic ? makeAnthropicDialect() : makeOpenAiDialect(false);
        return std::move(*HttpProvider::create(std::move(dialect), std::move(options)));
    }

private slots:
    void initTestCase() { qputenv("XDG_CONFIG_HOME", "/proc/nonexistent"); }
    void init()
    {
        m_script = std::make_unique<Script>();
        m_server = std::make_unique<LoopbackServer>(
            [script = m_script.get()](const SeenRequest &request) { return script->next(request); });
    }
    void cleanup() { m_server.reset(); }

    void asks_data()
    {
        QTest::addColumn<bool>("anthropic");
        QTest::addColumn<int>("pieceBytes");
        for (const bool anthropic : {true, false}) {
            for (const int piece : {0, 1, 7})
                QTest::addRow("%s, %d bytes a piece", anthropic ? "anthropic" : "openai", piece)
                    << anthropic << piece;
        }
    }
    void asks()
    {
        QFETCH(bool, anthropic);
        QFETCH(int, pieceBytes);
        ServerAnswer answer;
        answer.body = anthropic ? anthropicStream("0123456789", usage) : openAiStream("0123456789", usage);
        answer.pieceBytes = static_cast<std::size_t>(pieceBytes);
        answer.headers = {{"request-id", "req_7"}};
        m_script->answers = {answer};
        std::string streamed;
        const auto reply =
            make(anthropic)->ask(question("why?"), {}, [&](std::string_view text) { streamed += text; });
        QVERIFY2(reply, reply ? "" : reply.error().error.message.c_str());
        QCOMPARE(reply->text, std::string("0123456789"));
        QCOMPARE(streamed, reply->text);
        QCOMPARE(reply->usage, usage);
        QCOMPARE(reply->requestId, std::string("req_7"));
        const SeenRequest &seen = m_script->seen.at(0);
        QCOMPARE(seen.lastMessage(), std::string("why?"));
        QCOMPARE(seen.headers.at("content-type"), std::string("application/json"));
        QVERIFY(!seen.headers.count("expect"));
        if (anthropic) {
            QCOMPARE(seen.path, std::string("/v1/messages"));
            QCOMPARE(seen.headers.at("anthropic-version"), std::string("2023-06-01"));
            QCOMPARE(seen.headers.at("x-api-key"), secret);
        } else {
            QCOMPARE(seen.path, std::string("/v1/chat/completions"));
            QCOMPARE(seen.headers.at("authorization"), "Bearer " + secret);
        }
    }

    void triesAgain_data()
    {
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("retryAfter");
        for (const int status : {408, 429, 500, 502, 503, 529}) {
            for (const char *retryAfter : {"", "0", "86400", "Sun, 06 Nov 2094 08:49:37 GMT", "nonsense"})
                QTest::addRow("%d after '%s'", status, retryAfter) << status << retryAfter;
        }
    }
    void triesAgain()
    {
        QFETCH(int, status);
        QFETCH(QString, retryAfter);
        m_script->answers.assign(3, refusal(status, "{}", retryAfter.toStdString()));
        const auto reply = make(true)->ask(question("q"), {});
        QVERIFY(reply);
        QCOMPARE(m_script->seen.size(), 4);
    }

    void readsHeaders_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("value");
        QTest::addColumn<double>("least"); // of the seconds to wait
        QTest::addColumn<double>("most");
        QTest::addColumn<QString>("requestId");
        QTest::newRow("none") << "X-Nothing"
                              << "7" << 0.0 << 0.0 << "";
        QTest::newRow("seconds") << "Retry-After"
                                 << "12" << 12.0 << 12.0 << "";
        QTest::newRow("in small letters") << "retry-after"
                                          << "  3 " << 3.0 << 3.0 << "";
        QTest::newRow("negative") << "Retry-After"
                                  << "-5" << 0.0 << 0.0 << "";
        QTest::newRow("word") << "Retry-After"
                              << "soon" << 0.0 << 0.0 << "";
        QTest::newRow("past") << "Retry-After"
                              << "Sun, 06 Nov 1994 08:49:37 GMT" << 0.0 << 0.0 << "";
        const QString soon = QLocale::c().toString(QDateTime::currentDateTimeUtc().addSecs(60),
                                                   "ddd, dd MMM yyyy hh:mm:ss 'GMT'");
        QTest::newRow("date") << "Retry-After" << soon << 30.0 << 60.0 << "";
        QTest::newRow("id") << "Request-Id"
                            << "req_1" << 0.0 << 0.0 << "req_1";
        QTest::newRow("the other id") << "x-request-id"
                                      << "req_2" << 0.0 << 0.0 << "req_2";
        QTest::newRow("long id") << "request-id" << QString(1000, 'x') << 0.0 << 0.0 << QString(200, 'x');
    }
    void readsHeaders()
    {
        QFETCH(QString, name);
        QFETCH(QString, value);
        QFETCH(double, least);
        QFETCH(double, most);
        ServerAnswer answer = refusal(429, "{}");
        answer.headers.push_back({name.toStdString(), value.toStdString()});
        m_script->answers = {answer};
        const HttpResult result = httpPost({m_server->url(), {}, "{}", false}, {}, {}, {});
        QCOMPARE(result.status, 429);
        QVERIFY2(result.retryAfterSeconds >= least && result.retryAfterSeconds <= most,
                 qPrintable(QString::number(result.retryAfterSeconds)));
        QTEST(QString::fromStdString(result.requestId), "requestId");
    }

    void givesUp()
    {
        m_script->answers.assign(
            10,
            refusal(529, R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})"));
        const auto reply = make(true)->ask(question("q"), {});
        QCOMPARE(m_script->seen.size(), 4);
        QCOMPARE(reply.error().error.code, ErrorCode::Unavailable);
        QVERIFY(!reply.error().mayBeCharged);
        QCOMPARE(reply.error().error.message,
                 std::string(
                     "The server 127.0.0.1 refused the request (529, overloaded_error): Overloaded. It was "
                     "sent 4 times, with pauses in between."));
    }

    void refusals_data()
    {
        QTest::addColumn<int>("status");
        QTest::addColumn<QByteArray>("body");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("message");
        const auto codeOf = [](ErrorCode code) { return static_cast<int>(code); };
        QTest::newRow("bad request")
            << 400 << QByteArray(R"({"error":{"type":"invalid_request_error","message":"too long"}})")
            << codeOf(ErrorCode::InvalidInput) << "(400, invalid_request_error): too long.";
        QTest::newRow("key")
            << 401
            << QByteArray(R"({"error":{"message":"Incorrect API key provided: very-secret-key-0123456789"}})")
            << codeOf(ErrorCode::Unavailable) << "Incorrect API key provided: [key].";
        QTest::newRow("model") << 404
                               << QByteArray(
                                      R"({"error":{"type":"not_found_error","message":"model: nope"}})")
                               << codeOf(ErrorCode::NotFound) << "model: nope.";
        QTest::newRow("quota") << 429
                               << QByteArray(R"({"error":{"type":"insufficient_quota","message":"pay"}})")
                               << codeOf(ErrorCode::Unavailable) << "(429, insufficient_quota): pay.";
        QTest::newRow("text") << 403 << QByteArray("<html>no") << codeOf(ErrorCode::Unavailable)
                              << "refused the request (403).";
        QTest::newRow("redirect") << 302 << QByteArray() << codeOf(ErrorCode::Unavailable)
                                  << "sent the request elsewhere (302)";
        QTest::newRow("an odd success")
            << 204 << QByteArray() << codeOf(ErrorCode::Unavailable) << "refused the request (204)";
    }
    void refusals()
    {
        QFETCH(int, status);
        QFETCH(QByteArray, body);
        QFETCH(QString, message);
        ServerAnswer answer = refusal(status, body.toStdString());
        if (status == 302)
            answer.headers.push_back({"Location", m_server->url() + "/elsewhere"});
        m_script->answers = {answer};
        const auto reply = make(true)->ask(question("q"), {});
        QVERIFY(!reply);
        QCOMPARE(m_script->seen.size(), 1); // asked once: it would not help
        QTEST(static_cast<int>(reply.error().error.code), "code");
        QVERIFY2(reply.error().error.message.find(message.toStdString()) != std::string::npos,
                 reply.error().error.message.c_str());
        QVERIFY(!reply.error().mayBeCharged);
    }

    void whatMayBeChargedIsNotSentAgain_data()
    {
        QTest::addColumn<int>("fault");
        QTest::newRow("closed without a word") << 0;
        QTest::newRow("closed in the stream") << 1;
        QTest::newRow("silent in the stream") << 2;
        QTest::newRow("silent after the head") << 3;
        QTest::newRow("no JSON in the stream") << 4;
        QTest::newRow("error in the stream") << 5;
        QTest::newRow("ended early") << 6;
        QTest::newRow("no stream at all") << 7;
    }
    void whatMayBeChargedIsNotSentAgain()
    {
        QFETCH(int, fault);
        for (const bool anthropic : {true, false}) {
            ServerAnswer answer;
            answer.body =
                anthropic ? anthropicStream("0123456789", usage) : openAiStream("0123456789", usage);
            if (fault == 0)
                answer.status = 0;
            if (fault == 1)
                answer.dropAfter = answer.body.size() / 2;
            if (fault == 2)
                answer.stallAfter = answer.body.size() / 2;
            if (fault == 3)
                answer.stallAfter = 0;
            if (fault == 4)
                answer.body.replace(answer.body.size() / 2, 20, "\n\ndata: {{{\n\n");
            if (fault == 5)
                answer.body.insert(answer.body.find("data"),
                                   "data: {\"type\":\"error\",\"error\":{\"message\":\"oh\"}}\n\n");
            if (fault == 6)
                answer.body.resize(answer.body.size() / 2);
            if (fault == 7)
                answer.body = "<html>Welcome!";
            m_script->answers = {answer};
            m_script->seen.clear();
            const auto reply = make(anthropic, 0.1)->ask(question("q"), {});
            QVERIFY(!reply);
            QVERIFY(reply.error().mayBeCharged);
            QCOMPARE(m_script->seen.size(), 1);
            const ErrorCode code = reply.error().error.code;
            QCOMPARE(code == ErrorCode::Timeout, fault == 2 || fault == 3);
            QVERIFY(reply.error().error.message.ends_with('.'));
        }
    }

    /// A server that does not stream although it was asked to is read and charged once.
    void aReplyThatIsNotStreamedIsChargedOnce()
    {
        QTemporaryDir folder;
        for (const int piece : {0, 1}) {
            ServerAnswer answer;
            answer.body =
                "\n"
                R"({"id":"c1","choices":[{"message":{"content":"0123456789"},"finish_reason":"stop"}],)"
                R"("usage":{"prompt_tokens":150,"completion_tokens":40}})";
            answer.pieceBytes = static_cast<std::size_t>(piece);
            m_script->answers.push_back(answer);
        }
        const auto provider = make(false);
        auto author = Author::open(folder.path().toStdString(), *provider, testPrices(), 10);
        QVERIFY(author);
        for (const char *text : {"a", "b"}) {
            std::string streamed;
            const auto exchange =
                author->ask(question(text), {}, [&](std::string_view piece) { streamed += piece; });
            QVERIFY2(exchange, exchange ? "" : exchange.error().message.c_str());
            QCOMPARE(streamed, std::string("0123456789"));
            QVERIFY(exchange->reply.usageKnown);
        }
        QCOMPARE(m_script->seen.size(), 2);
        QCOMPARE(author->ledger().requests(), 2);
        QCOMPARE(author->ledger().usage().output, 80);
    }

    void saysThatItAsksAgain()
    {
        m_script->answers.assign(2, refusal(503, R"({"error":{"message":"loading"}})"));
        NetworkOptions options;
        options.baseUrl = m_server->url();
        options.retry = {4, 0.001, 0.005, 10};
        std::vector<std::string> notices;
        options.notice = [&](const std::string &text) { notices.push_back(text); };
        const auto provider = HttpProvider::create(makeAnthropicDialect(), options);
        QVERIFY((*provider)->ask(question("q"), {}));
        QCOMPARE(notices.size(), 2);
        QCOMPARE(
            notices[0],
            std::string("The server 127.0.0.1 refused the request (503): loading. It is asked again in 0.0 s "
                        "(2 of 4); nothing was charged."));
        QTemporaryDir folder;
        ServerAnswer broken;
        broken.body = "data: {{{\n\n";
        m_script->answers = {broken};
        auto author = Author::open(folder.path().toStdString(), **provider, testPrices(), 10);
        author->setRetries(2, 0);
        author->setNotice(options.notice);
        QVERIFY(author->ask(question("q")));
        QCOMPARE(notices.size(), 3);
        QVERIFY2(notices[2].find("may have been charged") != std::string::npos, notices[2].c_str());
    }

    void nobodyListens()
    {
        NetworkOptions options;
        options.baseUrl = m_server->url();
        options.retry = {3, 0.001, 0.005, 10};
        m_server.reset();
        const auto provider = HttpProvider::create(makeAnthropicDialect(), options);
        const auto reply = (*provider)->ask(question("q"), {});
        QVERIFY(!reply.error().mayBeCharged);
        QVERIFY2(reply.error().error.message.find("It was sent 3 times") != std::string::npos,
                 reply.error().error.message.c_str());
    }

    void aCompleteReplyNeedsNoClosedConnection()
    {
        ServerAnswer answer;
        answer.body = anthropicStream("0123456789", usage);
        answer.stallAfter = answer.body.size();
        answer.body += "never sent";
        m_script->answers = {answer};
        QVERIFY(make(true)->ask(question("q"), {}));
    }

    void stopsAtOnce_data()
    {
        QTest::addColumn<bool>("whileWaiting");
        QTest::newRow("in the stream") << false;
        QTest::newRow("between two attempts") << true;
    }
    void stopsAtOnce()
    {
        QFETCH(bool, whileWaiting);
        ServerAnswer answer = refusal(500);
        if (!whileWaiting) {
            answer.status = 200;
            answer.body = anthropicStream("0123456789", usage);
            answer.stallAfter = 300;
        }
        m_script->answers.assign(10, answer);
        NetworkOptions options;
        options.baseUrl = m_server->url();
        options.retry = {10, 600, 600, 6000};
        const auto provider = HttpProvider::create(makeAnthropicDialect(), options);
        std::stop_source stop;
        std::jthread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            stop.request_stop();
        });
        QElapsedTimer timer;
        timer.start();
        const auto reply = (*provider)->ask(question("q"), stop.get_token());
        QVERIFY2(timer.elapsed() < patienceMs, qPrintable(QString::number(timer.elapsed())));
        QCOMPARE(reply.error().error.code, ErrorCode::Cancelled);
        QCOMPARE(reply.error().mayBeCharged, !whileWaiting);
    }

    void replyTextsHoldNoKey()
    {
        QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        ServerAnswer echo;
        echo.body = anthropicStream("your key is " + secret + "!", {120, 0, 0, 40});
        ServerAnswer unauthorized = refusal(401, "{\"error\":{\"message\":\"bad key " + secret + "\"}}");
        ServerAnswer html = refusal(403, "<html>" + secret);
        ServerAnswer broken;
        broken.body = "data: {\"type\":\"error\",\"error\":{\"message\":\"" + secret + "\"}}\n\n";
        m_script->answers = {echo, unauthorized, html, broken, broken, broken};
        const auto provider = make(true);
        auto author = Author::open(root, *provider, testPrices(), 10);
        author->setRetries(2, 0);
        const auto reply = author->ask(question("a"));
        QVERIFY(reply);
        QCOMPARE(reply->reply.text, std::string("your key is [key]!"));
        for (int i = 0; i < 3; ++i) {
            const auto refused = author->ask(question("b"));
            QVERIFY(!refused);
            QVERIFY((refused.error().message + refused.error().detail).find(secret) == std::string::npos);
        }
        for (const char *file : {"transcript.jsonl", "ledger.jsonl"})
            QVERIFY(files::readFile(root / file, 1 << 20)->find(secret) == std::string::npos);
    }

    void baseUrls_data()
    {
        QTest::addColumn<QString>("url");
        QTest::addColumn<bool>("sound");
        QTest::addColumn<bool>("onThisMachine");
        QTest::newRow("https") << "https://api.example.com/v1/" << true << false;
        QTest::newRow("loopback") << "http://127.0.0.1:8000/v1" << true << true;
        QTest::newRow("loopback net") << "http://127.9.9.9" << true << true;
        QTest::newRow("localhost") << "http://localhost:11434/v1" << true << true;
        QTest::newRow("IPv6") << "http://[::1]:8000" << true << true;
        QTest::newRow("plain http") << "http://api.example.com" << false << false;
        QTest::newRow("a name like it") << "http://localhost.example.com" << false << false;
        QTest::newRow("a number like it") << "http://127.0.0.1.example.com" << false << false;
        QTest::newRow("any address") << "http://0.0.0.0:8000" << false << false;
        QTest::newRow("the network") << "http://192.168.1.5:8000" << false << false;
        QTest::newRow("password") << "https://me:hunter2@example.com" << false << false;
        QTest::newRow("query") << "https://example.com/?key=hunter2" << false << false;
        QTest::newRow("file") << "file:///etc/passwd" << false << false;
        QTest::newRow("nothing") << "" << false << false;
        QTest::newRow("words") << "not a url" << false << false;
    }
    void baseUrls()
    {
        QFETCH(QString, url);
        QFETCH(bool, sound);
        const auto parsed = parseBaseUrl(url.toStdString());
        QCOMPARE(parsed.has_value(), sound);
        if (parsed) {
            QTEST(parsed->onThisMachine, "onThisMachine");
            QVERIFY(!parsed->text.ends_with('/'));
        } else {
            QVERIFY(parsed.error().message.find("hunter2") == std::string::npos);
        }
    }

    /// A person's own hosts are asked as this machine is.
    void ownHosts()
    {
        const std::vector<std::string> own{"gpu1.lab", "192.168.1.5", "[fd00::1]"};
        for (const char *url : {"http://gpu1.lab:8000/v1", "http://GPU1.lab", "http://192.168.1.5:8000",
                                "http://[fd00::1]:8000/v1", "https://gpu1.lab"}) {
            const auto parsed = parseBaseUrl(url, own);
            QVERIFY2(parsed && parsed->isOwn && !parsed->onThisMachine, url);
        }
        for (const char *url :
             {"http://gpu2.lab", "http://gpu1.lab.example.com", "http://192.168.1.50", "http://me@gpu1.lab"})
            QVERIFY2(!parseBaseUrl(url, own), url);
        QVERIFY(!parseBaseUrl("https://example.com", own)->isOwn);
        QVERIFY(parseBaseUrl("http://127.0.0.1:1")->isOwn);
        NetworkOptions options;
        options.baseUrl = "http://gpu1.lab:1";
        options.ownHosts = own;
        QVERIFY(!(*HttpProvider::create(makeOpenAiDialect(false), options))->isPaid());
        QVERIFY(isPaidUnlessSaid("openai", ""));
        QVERIFY(isPaidUnlessSaid("openai", "http://gpu1.lab"));
        QVERIFY(!isPaidUnlessSaid("openai", "http://localhost:11434/v1"));
        QVERIFY(!isPaidUnlessSaid("exec", ""));
    }

    void theFactory()
    {
        qunsetenv("ANTHROPIC_API_KEY");
        QVERIFY(hasNetworkProviders());
        const auto provider = makeProvider("anthropic", {});
        QVERIFY(provider);
        QVERIFY((*provider)->isPaid());
        const auto reply = (*provider)->ask(question("q"), {});
        QCOMPARE(reply.error().error.message, std::string("There is no API key for 'anthropic'."));
        QVERIFY(reply.error().error.detail.find("ANTHROPIC_API_KEY") != std::string::npos);
        ProviderOptions local;
        local.baseUrl = m_server->url() + "/v1";
        const auto free = makeProvider("openai", local);
        QVERIFY(free && !(*free)->isPaid());
        QCOMPARE((*free)->ask(question("q"), {})->text, std::string("0123456789"));
        QCOMPARE(m_script->seen.at(0).headers.count("authorization"), 0);
        local.baseUrl = "http://example.com";
        QVERIFY(!makeProvider("openai", local));
        QVERIFY(makeProvider("openia", {}).error().message.find("did you mean 'openai'?")
                != std::string::npos);
        QVERIFY(!makeProvider("exec", {}));
        QVERIFY(!makeProvider("manual", {}));
        QVERIFY(!makeProvider("replay", {}));
        ProviderOptions manual;
        manual.desk = std::make_shared<ManualDesk>();
        QCOMPARE((*makeProvider("manual", manual))->name(), std::string("manual"));
    }
};

QTEST_GUILESS_MAIN(TestHttpProvider)
#include "tst_httpprovider.moc"
