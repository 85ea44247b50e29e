// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/mcp/schema.h"
#include "core/interop/mcp/server.h"
#include "tests/patience.h"

#include <QTest>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>

using namespace klineage::mcp;
using nlohmann::json;

namespace {

/// A server with a tool that answers at once, one that waits until it is stopped, and one that throws.
class Session
{
public:
    Session()
        : m_server(
            ServerInfo{"test", "Test", "1.0", "Say something."}, tools(),
            [this](const std::string &line) { keep(line); }, offers())
    {}

    void write(const std::string &line) { m_server.receive(line); }
    void write(const json &message) { m_server.receive(message.dump()); }
    void initialize(const std::string &version = "2025-06-18")
    {
        write({{"jsonrpc", "2.0"},
               {"id", 0},
               {"method", "initialize"},
               {"params",
                {{"protocolVersion", version},
                 {"capabilities", json::object()},
                 {"clientInfo", {{"name", "tst"}, {"version", "1"}}}}}});
        write({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
        static_cast<void>(next());
    }
    void call(const json &id, const std::string &tool, const json &arguments = json::object(),
              const json &meta = json())
    {
        json params{{"name", tool}, {"arguments", arguments}};
        if (!meta.is_null())
            params["_meta"] = meta;
        write({{"jsonrpc", "2.0"}, {"id", id}, {"method", "tools/call"}, {"params", params}});
    }

    /// The next line that was sent; null after ten seconds without one.
    json next()
    {
        std::unique_lock lock(m_mutex);
        if (!m_changed.wait_for(lock, std::chrono::seconds(10), [this] { return !m_lines.empty(); }))
            return {};
        const json line = m_lines.front();
        m_lines.pop_front();
        return line;
    }
    [[nodiscard]] bool isSilent()
    {
        const std::lock_guard lock(m_mutex);
        return m_lines.empty();
    }
    Server &server() { return m_server; }
    std::atomic<int> stopped = 0;
    std::atomic<bool> started = false;

private:
    static Offers offers()
    {
        Offers offers;
        offers.resources = [] {
            return std::vector<Resource>{{"test://one", "one", "One", "The only one", "text/plain"}};
        };
        offers.templates = {{"test://{name}", "any", "Any", "By its name", "text/plain"}};
        offers.read = [](const std::string &uri) -> std::optional<ResourceText> {
            if (uri == "test://broken")
                throw std::runtime_error("it is broken");
            return uri == "test://one" ? std::optional(ResourceText{"text/plain", "The one."}) : std::nullopt;
        };
        offers.prompts = {{"greet",
                           "Greet",
                           "Says hello",
                           {{"who", "Whom", true}, {"how", "In which way", false}},
                           [](const std::map<std::string, std::string> &arguments, std::string &problem) {
                               if (arguments.at("who") == "nobody")
                                   problem = "There is nobody.";
                               return "Hello, " + arguments.at("who") + '.';
                           }}};
        return offers;
    }

    std::vector<Tool> tools()
    {
        const json text{{"type", "object"},
                        {"properties", {{"text", {{"type", "string"}, {"maxLength", 10}}}}},
                        {"required", {"text"}}};
        const json nothing{{"type", "object"}, {"properties", json::object()}};
        Tool echo{
            "echo", "Echo", "Says it again.", text, true, false, [](const json &arguments, const Call &) {
                return toolData({{"said", arguments.at("text")}});
            }};
        Tool sleep{"sleep", "Sleep", "Waits.", nothing, false, true, [this](const json &, const Call &call) {
                       started = true;
                       call.progress(0.5, "half");
                       call.progress(0.25, "back"); // not sent: less than before
                       while (!call.stop.stop_requested())
                           std::this_thread::sleep_for(std::chrono::milliseconds(1));
                       ++stopped;
                       return toolError("stopped");
                   }};
        Tool quick{"quick", "Quick", "Long, but quick.", nothing, true, true, [](const json &, const Call &) {
                       return toolData({{"done", true}});
                   }};
        Tool broken{"broken",
                    "Broken",
                    "Throws.",
                    nothing,
                    true,
                    false,
                    [](const json &, const Call &) -> ToolResult { throw std::runtime_error("no luck"); }};
        return {echo, sleep, quick, broken};
    }

    void keep(const std::string &line)
    {
        const std::lock_guard lock(m_mutex);
        m_lines.push_back(json::parse(line));
        m_changed.notify_all();
    }

    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<json> m_lines;
    Server m_server; // last: its thread writes to the others
};

/// QCOMPARE cannot take a json: it converts to everything.
std::string text(const json &value)
{
    return value.dump();
}

json ping(const json &id)
{
    return {{"jsonrpc", "2.0"}, {"id", id}, {"method", "ping"}};
}

} // namespace

class TestMcp : public QObject
{
    Q_OBJECT

private slots:
    void versionsAreNegotiated_data()
    {
        QTest::addColumn<QString>("asked");
        QTest::addColumn<QString>("agreed");
        for (const char *version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
            QTest::newRow(version) << version << version;
        QTest::newRow("unknown") << "1999-01-01"
                                 << "2025-11-25";
        QTest::newRow("newer") << "2099-01-01"
                               << "2025-11-25";
        QTest::newRow("one without sessions") << "2026-07-28"
                                              << "2025-11-25";
    }
    void versionsAreNegotiated()
    {
        QFETCH(QString, asked);
        QFETCH(QString, agreed);
        Session session;
        session.write({{"jsonrpc", "2.0"},
                       {"id", "a"},
                       {"method", "initialize"},
                       {"params",
                        {{"protocolVersion", asked.toStdString()},
                         {"capabilities", json::object()},
                         {"clientInfo", {{"name", "tst"}, {"version", "1"}}}}}});
        const json answer = session.next();
        QCOMPARE(text(answer.at("id")), text(json("a")));
        QCOMPARE(answer.at("result").at("protocolVersion").get<std::string>(), agreed.toStdString());
        QVERIFY(answer.at("result").at("capabilities").contains("tools"));
        QCOMPARE(text(answer.at("result").at("serverInfo").at("name")), text(json("test")));
        QCOMPARE(answer.at("result").at("serverInfo").contains("title"), agreed >= "2025-06-18");
    }

    void eachRequestMaySayItsVersion()
    {
        Session session; // and never opens a session
        const auto ask = [&session](const char *method, json params = json::object(),
                                    const char *version = "2026-07-28") {
            params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", version},
                               {"io.modelcontextprotocol/clientCapabilities", json::object()}};
            session.write({{"jsonrpc", "2.0"}, {"id", 5}, {"method", method}, {"params", params}});
            return session.next();
        };
        const json found = ask("server/discover").at("result");
        QCOMPARE(text(found.at("supportedVersions")), text(json(protocolVersions())));
        QCOMPARE(text(found.at("resultType")), text(json("complete")));
        QVERIFY(found.at("capabilities").contains("tools") && found.at("capabilities").contains("prompts"));
        QCOMPARE(text(found.at("_meta").at("io.modelcontextprotocol/serverInfo").at("name")),
                 text(json("test")));
        const json tools = ask("tools/list").at("result");
        QVERIFY(tools.at("ttlMs").is_number_unsigned() && tools.at("cacheScope") == "private");
        const json called =
            ask("tools/call", {{"name", "echo"}, {"arguments", {{"text", "hi"}}}}).at("result");
        QCOMPARE(text(called.at("resultType")), text(json("complete")));
        QVERIFY(!called.at("isError").get<bool>() && called.contains("structuredContent"));
        QCOMPARE(text(ask("ping").at("result").at("resultType")), text(json("complete")));

        const json refused = ask("tools/list", json::object(), "2031-01-01").at("error");
        QCOMPARE(refused.at("code").get<int>(), unsupportedVersion);
        QCOMPARE(text(refused.at("data").at("requested")), text(json("2031-01-01")));
        QCOMPARE(text(refused.at("data").at("supported")), text(json(protocolVersions())));
        session.write({{"jsonrpc", "2.0"},
                       {"id", 6},
                       {"method", "tools/list"},
                       {"params", {{"_meta", {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}}}}}});
        QCOMPARE(session.next().at("error").at("code").get<int>(), invalidParams);
        // A client of the other kind on the same connection.
        session.initialize("2025-06-18");
        session.write({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "server/discover"}});
        QCOMPARE(session.next().at("error").at("code").get<int>(), methodNotFound);
    }

    void resourcesAreRead()
    {
        Session session;
        session.initialize("2025-06-18");
        const auto ask = [&session](const char *method, const json &params = json::object()) {
            session.write({{"jsonrpc", "2.0"}, {"id", 5}, {"method", method}, {"params", params}});
            return session.next();
        };
        const json listed = ask("resources/list").at("result").at("resources");
        QCOMPARE(listed.size(), std::size_t{1});
        QCOMPARE(text(listed[0].at("uri")), text(json("test://one")));
        QCOMPARE(
            text(ask("resources/templates/list").at("result").at("resourceTemplates")[0].at("uriTemplate")),
            text(json("test://{name}")));
        const json read = ask("resources/read", {{"uri", "test://one"}}).at("result").at("contents");
        QCOMPARE(text(read[0].at("text")), text(json("The one.")));
        QCOMPARE(text(read[0].at("mimeType")), text(json("text/plain")));
        QCOMPARE(ask("resources/read", {{"uri", "test://two"}}).at("error").at("code").get<int>(),
                 resourceNotFound);
        QCOMPARE(ask("resources/read", {{"uri", 4}}).at("error").at("code").get<int>(), invalidParams);
        QCOMPARE(ask("resources/read", {{"uri", "test://broken"}}).at("error").at("code").get<int>(),
                 internalError);
    }

    void promptsAreFilledIn()
    {
        Session session;
        session.initialize("2025-06-18");
        const auto ask = [&session](const char *method, const json &params = json::object()) {
            session.write({{"jsonrpc", "2.0"}, {"id", 5}, {"method", method}, {"params", params}});
            return session.next();
        };
        const json listed = ask("prompts/list").at("result").at("prompts");
        QCOMPARE(text(listed[0].at("name")), text(json("greet")));
        QVERIFY(listed[0].at("arguments")[0].at("required").get<bool>());
        const json made =
            ask("prompts/get", {{"name", "greet"}, {"arguments", {{"who", "you"}}}}).at("result");
        QCOMPARE(text(made.at("messages")[0].at("role")), text(json("user")));
        QCOMPARE(text(made.at("messages")[0].at("content").at("text")), text(json("Hello, you.")));
        for (const json &params : {json{{"name", "greet"}}, json{{"name", "great"}}, json{{"name", 1}},
                                   json{{"name", "greet"}, {"arguments", {{"who", 1}}}},
                                   json{{"name", "greet"}, {"arguments", json::array()}},
                                   json{{"name", "greet"}, {"arguments", {{"who", std::string(2000, 'x')}}}},
                                   json{{"name", "greet"}, {"arguments", {{"who", "nobody"}}}}})
            QCOMPARE(ask("prompts/get", params).at("error").at("code").get<int>(), invalidParams);
    }

    void whatIsTooLongIsAnsweredToItsId_data()
    {
        QTest::addColumn<QByteArray>("head");
        QTest::addColumn<QByteArray>("tail");
        QTest::addColumn<QByteArray>("id");
        const auto quoted = [](const char *text) { return QByteArray(text).replace('\'', '"'); };
        const QByteArray call = quoted("'method':'tools/call','params':{'arguments':{'id':99,'text':'");
        const auto row = [&](const char *name, const char *head, const char *tail, const char *id) {
            QTest::newRow(name) << quoted(head) + call << quoted(tail) << quoted(id);
        };
        row("the id first", "{'jsonrpc':'2.0','id':7,", "xxx'}}}", "7");
        row("a text first", "{'id' : 'a\\'b' ,", "x'}}}", "'a\\'b'");
        row("the id last", "{", "xxx'}},'jsonrpc':'2.0','id':8}", "8");
        row("within a value", "{", "xxx','id':8}}}", "null");
        row("in a text", "{", "xxx\\'id\\':8}'}}", "null");
        row("none", "{", "xxx'}}}", "null");
        QTest::newRow("cut") << quoted("{'id':1") << QByteArray("23") << QByteArray("null");
    }
    void whatIsTooLongIsAnsweredToItsId()
    {
        QFETCH(QByteArray, head);
        QFETCH(QByteArray, tail);
        QFETCH(QByteArray, id);
        const Incoming incoming = parseLine(head.toStdString(), tail.toStdString());
        QCOMPARE(incoming.messages.size(), std::size_t{1});
        const auto *refusal = std::get_if<Refusal>(&incoming.messages.front());
        QVERIFY(refusal);
        QCOMPARE(text(refusal->id), text(json::parse(id.toStdString())));
        QCOMPARE(refusal->code, parseError);
    }

    void badMessagesAreRefused_data()
    {
        QTest::addColumn<QByteArray>("line");
        QTest::addColumn<int>("code");
        QTest::addColumn<QByteArray>("id");
        const auto row = [](const char *name, const QByteArray &line, int code, const char *id = "null") {
            QTest::newRow(name) << line << code << QByteArray(id);
        };
        row("no JSON", "{", parseError);
        row("no UTF-8", "\"\xff\"", parseError);
        row("too deep", QByteArray(40, '[') + QByteArray(40, ']'), parseError);
        row("a number", "1", invalidRequest);
        row("no version", R"({"id":1,"method":"ping"})", invalidRequest, "1");
        row("another version", R"({"jsonrpc":"1.0","id":1,"method":"ping"})", invalidRequest, "1");
        row("no method", R"({"jsonrpc":"2.0","id":1})", invalidRequest, "1");
        row("a method that is no string", R"({"jsonrpc":"2.0","id":1,"method":4})", invalidRequest, "1");
        row("a null id", R"({"jsonrpc":"2.0","id":null,"method":"ping"})", invalidRequest);
        row("a fractional id", R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", invalidRequest);
        row("params in a list", R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})", invalidParams,
            "1");
        row("an empty batch", "[]", invalidRequest);
        row("a batch that the version has not", R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])",
            invalidRequest);
        row("deep params",
            R"({"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":)" + QByteArray(40, '[')
                + QByteArray(40, ']') + "}}",
            parseError, "3");
        row("an unknown method", R"({"jsonrpc":"2.0","id":1,"method":"resources/subscribe"})", methodNotFound,
            "1");
        row("a second initialize",
            R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}})",
            invalidRequest, "1");
        row("a cursor", R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}})",
            invalidParams, "1");
        row("an unknown tool", R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ecko"}})",
            invalidParams, "1");
        row("no tool", R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})", invalidParams, "1");
        row("arguments in a list",
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}})",
            invalidParams, "1");
    }
    void badMessagesAreRefused()
    {
        QFETCH(QByteArray, line);
        QFETCH(int, code);
        QFETCH(QByteArray, id);
        Session session;
        session.initialize();
        session.write(line.toStdString());
        const json answer = session.next();
        QCOMPARE(answer.at("error").at("code").get<int>(), code);
        QCOMPARE(text(answer.at("id")), text(json::parse(id.toStdString())));
        QVERIFY(answer.at("error").at("message").get<std::string>().ends_with('.'));
        session.write(ping(7)); // and the session goes on
        QCOMPARE(text(session.next().at("id")), text(json(7)));
    }

    void initializeIsCheckedAndComesFirst()
    {
        Session session;
        session.write(ping("early"));
        QCOMPARE(text(session.next().at("result")), text(json::object()));
        session.call(1, "echo", {{"text", "hi"}});
        QCOMPARE(text(session.next().at("error").at("code")), text(json(invalidRequest)));
        for (
            const char *params :
            {R"({})", R"({"protocolVersion":1})", R"({"protocolVersion":"2025-06-18","capabilities":{}})",
             R"({"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x"}})",
             R"({"protocolVersion":"2025-06-18","capabilities":1,"clientInfo":{"name":"x","version":"1"}})"}) {
            session.write(R"({"jsonrpc":"2.0","id":2,"method":"initialize","params":)" + std::string(params)
                          + '}');
            QCOMPARE(text(session.next().at("error").at("code")), text(json(invalidParams)));
        }
        session.initialize();
    }

    void notificationsAreNeverAnswered()
    {
        Session session;
        session.initialize();
        session.write(std::string(R"({"jsonrpc":"2.0","method":"notifications/anything"})"));
        session.write(std::string(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{}})"));
        session.write(std::string(
            R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1}}})"));
        session.write(std::string(R"({"jsonrpc":"2.0","method":"x","params":[]})"));
        session.write(std::string(R"({"jsonrpc":"2.0","id":4,"result":{}})"));
        session.write(std::string("  "));
        QVERIFY(session.isSilent());
    }

    void toolsAreListed()
    {
        Session session;
        session.initialize();
        session.write({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "tools/list"}});
        const json tools = session.next().at("result").at("tools");
        QCOMPARE(tools.size(), std::size_t{4});
        QCOMPARE(text(tools[0].at("name")), text(json("echo")));
        QCOMPARE(text(tools[0].at("inputSchema").at("type")), text(json("object")));
        QCOMPARE(text(tools[1].at("annotations").at("readOnlyHint")), text(json(false)));
    }

    void toolsAnswer()
    {
        Session session;
        session.initialize();
        session.call(1, "echo", {{"text", "hi"}});
        const json result = session.next().at("result");
        QCOMPARE(text(result.at("isError")), text(json(false)));
        QCOMPARE(text(result.at("structuredContent")), text(json({{"said", "hi"}})));
        QCOMPARE(text(json::parse(result.at("content")[0].at("text").get<std::string>())),
                 text({{"said", "hi"}}));
        session.call(2, "broken");
        const json broken = session.next().at("result");
        QCOMPARE(text(broken.at("isError")), text(json(true)));
        QVERIFY(broken.at("content")[0].at("text").get<std::string>().find("no luck") != std::string::npos);
    }

    void oldVersionsGetNoStructuredContent()
    {
        Session session;
        session.initialize("2024-11-05");
        session.call(1, "echo", {{"text", "hi"}});
        QVERIFY(!session.next().at("result").contains("structuredContent"));
    }

    void argumentsAreChecked_data()
    {
        QTest::addColumn<QByteArray>("arguments");
        QTest::addColumn<QString>("sentence");
        QTest::newRow("missing") << QByteArray("{}") << "text is missing.";
        QTest::newRow("a number") << QByteArray(R"({"text":1})") << "text is number; string was expected.";
        QTest::newRow("too long") << QByteArray(R"({"text":"12345678901"})")
                                  << "text has more than 10 bytes.";
        QTest::newRow("unknown") << QByteArray(R"({"text":"1","texts":"2"})")
                                 << "'texts' is no argument; did you mean 'text'?";
    }
    void argumentsAreChecked()
    {
        QFETCH(QByteArray, arguments);
        QFETCH(QString, sentence);
        Session session;
        session.initialize();
        session.call(1, "echo", json::parse(arguments.toStdString()));
        const json result = session.next().at("result");
        QCOMPARE(text(result.at("isError")), text(json(true)));
        QCOMPARE(result.at("content")[0].at("text").get<std::string>(), sentence.toStdString());
    }

    void schemasAreChecked_data()
    {
        QTest::addColumn<QByteArray>("value");
        QTest::addColumn<QString>("problem");
        QTest::newRow("fits") << QByteArray(
            R"({"n":3,"list":["a","b"],"map":{"x":1},"one":{"k":true},"f":1.5})")
                              << "";
        QTest::newRow("no object") << QByteArray("3")
                                   << "The argument object is number; object was expected.";
        QTest::newRow("below") << QByteArray(R"({"n":0})") << "n is 0; expected 1 to 5.";
        QTest::newRow("above") << QByteArray(R"({"n":6})") << "n is 6; expected 1 to 5.";
        QTest::newRow("a fraction") << QByteArray(R"({"n":1.5})") << "n is number; integer was expected.";
        QTest::newRow("a whole float") << QByteArray(R"({"n":2.0})") << "";
        QTest::newRow("a word") << QByteArray(R"({"list":["a","c"]})")
                                << "list[1] is 'c'; expected 'a' or 'b'.";
        QTest::newRow("many") << QByteArray(R"({"list":["a","a","a","a"]})")
                              << "list has more than 3 elements.";
        QTest::newRow("inside a map")
            << QByteArray(R"({"map":{"x":"1"}})") << "map.x is string; integer was expected.";
        QTest::newRow("inside an object") << QByteArray(R"({"one":{}})") << "one.k is missing.";
        QTest::newRow("null") << QByteArray(R"({"n":null})") << "n is null; integer was expected.";
        QTest::newRow("empty") << QByteArray(R"({"s":""})") << "s is empty.";
    }
    void schemasAreChecked()
    {
        QFETCH(QByteArray, value);
        QFETCH(QString, problem);
        const json schema = json::parse(R"({"type":"object","properties":{
            "n":{"type":"integer","minimum":1,"maximum":5},
            "f":{"type":"number"},
            "s":{"type":"string","minLength":1},
            "list":{"type":"array","maxItems":3,"items":{"type":"string","enum":["a","b"]}},
            "map":{"type":"object","additionalProperties":{"type":"integer"}},
            "one":{"type":"object","properties":{"k":{"type":"boolean"}},"required":["k"]}}})");
        const auto found = schemaProblem(schema, json::parse(value.toStdString()));
        QCOMPARE(QString::fromStdString(found.value_or("")), problem);
    }

    void pingsAreAnsweredDuringLongCalls()
    {
        Session session;
        session.initialize();
        session.call("long", "sleep", json::object(), {{"progressToken", 9}});
        const json progress = session.next();
        QCOMPARE(text(progress.at("method")), text(json("notifications/progress")));
        QCOMPARE(text(progress.at("params").at("progressToken")), text(json(9)));
        QCOMPARE(text(progress.at("params").at("progress")), text(json(0.5)));
        session.write(ping(2));
        QCOMPARE(text(session.next().at("id")), text(json(2)));
        session.call("long", "sleep");
        QCOMPARE(text(session.next().at("error").at("code")), text(json(invalidRequest))); // the id is taken
        session.write(std::string(
            R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long","reason":"x"}})"));
        session.server().wait();
        QCOMPARE(session.stopped.load(), 1);
        QVERIFY(session.isSilent()); // a cancelled request is not answered
        session.call("long", "quick");
        QCOMPARE(text(session.next().at("id")), text(json("long")));
    }

    void aQueuedCallCanBeCancelled()
    {
        Session session;
        session.initialize();
        session.call(1, "sleep");
        QTRY_VERIFY(session.started);
        session.call(2, "sleep");
        for (const int id : {2, 1})
            session.write(
                {{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
        session.server().wait();
        QCOMPARE(session.stopped.load(), 1);
        QVERIFY(session.isSilent());
    }

    void destructionStopsCalls()
    {
        Session session;
        {
            Server other({"other", "Other", "1", ""},
                         {Tool{"sleep",
                               "",
                               "",
                               {{"type", "object"}},
                               true,
                               true,
                               [&](const json &, const Call &call) {
                                   session.started = true;
                                   while (!call.stop.stop_requested())
                                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                   ++session.stopped;
                                   return ToolResult{};
                               }}},
                         [](const std::string &) {});
            other.receive(
                R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}})");
            other.receive(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep"}})");
            QTRY_VERIFY(session.started);
        }
        QCOMPARE(session.stopped.load(), 1);
    }

    void batchesAreAnsweredTogether()
    {
        Session session;
        session.initialize("2025-03-26");
        json batch = json::array({ping(1), {{"jsonrpc", "2.0"}, {"method", "notifications/x"}}, 5});
        batch.push_back({{"jsonrpc", "2.0"},
                         {"id", 2},
                         {"method", "tools/call"},
                         {"params", {{"name", "quick"}, {"arguments", json::object()}}}});
        session.write(batch);
        const json answer = session.next();
        QVERIFY(answer.is_array());
        QCOMPARE(answer.size(), std::size_t{3});
        session.write(json::array({{{"jsonrpc", "2.0"}, {"method", "notifications/x"}}}));
        session.server().wait();
        QVERIFY(session.isSilent()); // nothing to answer
    }

    void tooManyCallsAreRefused()
    {
        Session session;
        session.initialize();
        for (int id = 1; id <= 17; ++id)
            session.call(id, "sleep");
        const json result = session.next();
        QCOMPARE(text(result.at("id")), text(json(17)));
        QCOMPARE(text(result.at("result").at("isError")), text(json(true)));
    }
};

QTEST_GUILESS_MAIN(TestMcp)
#include "tst_mcp.moc"
