// SPDX-License-Identifier: GPL-3.0-or-later
// What a provider sends, says and believes of addresses. What comes of servers that go wrong: tst_modelfaults.
#include "core/llm/author.h"
#include "core/llm/makeprovider.h"
#include "core/llm/network/httppost.h"
#include "core/llm/network/httpprovider.h"
#include "tests/core/llm/loopbackserver.h"
#include "tests/core/llm/scriptedprovider.h"

#include <QDateTime>
#include <QLocale>
#include <QTemporaryDir>
#include <QTest>

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

ServerAnswer refusal(int status, const std::string &body)
{
    ServerAnswer answer;
    answer.status = status;
    answer.body = body;
    return answer;
}

} // namespace

class TestHttpProvider : public QObject
{
    Q_OBJECT

private:
    std::unique_ptr<Script> m_script;
    std::unique_ptr<LoopbackServer> m_server;

    std::unique_ptr<HttpProvider> make(bool anthropic) const
    {
        NetworkOptions options;
        options.baseUrl = m_server->url() + (anthropic ? "" : "/v1");
        options.key = [](std::string_view) { return secret; };
        options.paid = true;
        options.retry = {4, 0.001, 0.005, 10};
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

    void baseUrlsEndInTheVersionOrNot()
    {
        for (const std::string end : {"", "/", "/v1", "/v1/"}) {
            NetworkOptions options;
            options.baseUrl = m_server->url() + end;
            options.key = [](std::string_view) { return secret; };
            const auto provider = HttpProvider::create(makeAnthropicDialect(), options);
            QVERIFY((*provider)->ask(question("why?"), {}, {}));
            QCOMPARE(m_script->seen.back().path, std::string("/v1/messages"));
        }
    }

    void saysWhereItAskedInVain()
    {
        m_script->answers = {
            refusal(404, R"({"error": {"type": "not_found_error", "message": "File Not Found"}})")};
        const auto reply = make(false)->ask(question("why?"), {}, {});
        QVERIFY(!reply);
        const std::string &detail = reply.error().error.detail;
        QVERIFY2(detail.find("asked at " + m_server->url() + "/v1/chat/completions") != std::string::npos,
                 detail.c_str());
    }

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
