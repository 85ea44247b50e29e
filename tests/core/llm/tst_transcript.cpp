// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/author.h"
#include "tests/core/llm/scriptedprovider.h"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <random>

using namespace klineage;
using namespace klineage::llm;

namespace {

bool isSame(const Request &a, const Request &b)
{
    return a.purpose == b.purpose && a.model == b.model && a.system == b.system
           && a.cacheSystem == b.cacheSystem && a.messages == b.messages
           && a.maxOutputTokens == b.maxOutputTokens && a.temperature == b.temperature && a.effort == b.effort
           && a.extraBody == b.extraBody;
}

/// The exchanges of a run, numbered, with what an author would add.
class Run
{
public:
    const Exchange &add(Request request, const std::string &reply)
    {
        Exchange exchange;
        exchange.number = static_cast<int>(m_exchanges.size()) + 1;
        exchange.time = "2026-11-22T12:00:00.000Z";
        exchange.provider = "scripted";
        exchange.fingerprint = fingerprint(request);
        exchange.request = std::move(request);
        exchange.reply = *ScriptedProvider::reply(reply, 1, 1);
        m_lines.push_back(writeExchange(exchange, m_exchanges));
        m_exchanges.push_back(std::move(exchange));
        return m_exchanges.back();
    }
    const std::vector<Exchange> &exchanges() const { return m_exchanges; }
    const std::vector<std::string> &lines() const { return m_lines; }
    std::string text() const
    {
        std::string text;
        for (const std::string &line : m_lines)
            text += line + '\n';
        return text;
    }

private:
    std::vector<Exchange> m_exchanges;
    std::vector<std::string> m_lines;
};

/// The next question of the chat.
Request following(const Exchange &exchange, const std::string &text)
{
    Request request = exchange.request;
    request.messages.push_back({Role::Assistant, exchange.reply.text, false});
    request.messages.push_back({Role::User, text, false});
    return request;
}

int timesIn(const std::string &text, const std::string &part)
{
    int times = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++times;
    return times;
}

} // namespace

class TestTranscript : public QObject
{
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    std::filesystem::path file() const { return m_folder.path().toStdString() + "/transcript.jsonl"; }

    Result<std::vector<Exchange>> readBack(const std::string &text) const
    {
        std::ofstream(file(), std::ios::binary) << text;
        return readTranscript(file());
    }

    void compare(const Run &run) const
    {
        const auto read = readBack(run.text());
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        QCOMPARE(read->size(), run.exchanges().size());
        for (std::size_t i = 0; i < read->size(); ++i) {
            QVERIFY2(isSame(read->at(i).request, run.exchanges()[i].request), run.lines()[i].c_str());
            QCOMPARE(read->at(i).reply.text, run.exchanges()[i].reply.text);
        }
    }

private slots:
    void writesAChatOnce()
    {
        Run run;
        Request first = question("the first question");
        first.messages[0].cacheUpToHere = true;
        const Exchange *last = &run.add(first, "the first reply");
        for (const char *word : {"second", "third", "fourth"}) {
            Request next = following(*last, std::string("the ") + word + " question");
            for (Message &message : next.messages)
                message.cacheUpToHere = false;
            next.messages.back().cacheUpToHere = true;
            last = &run.add(next, std::string("the ") + word + " reply");
        }
        for (const char *part : {"You answer.", "the first question", "the first reply",
                                 "the second question", "the third reply", "the fourth question"})
            QCOMPARE(timesIn(run.text(), part), 1);
        QVERIFY2(run.lines()[1].starts_with(
                     R"({"number":2,"time":"2026-11-22T12:00:00.000Z","provider":"scripted",)"
                     R"("request":{"after":1,"messages":[{"role":"user",)"
                     R"("text":"the second question","cache":true}]},"fingerprint":)"),
                 run.lines()[1].c_str());
        compare(run);
    }

    void namesTheChatThatItGoesOnWith()
    {
        Run run;
        run.add(question("one chat"), "its reply");
        Request other = question("another chat");
        other.system = "You answer something else.";
        run.add(other, "the other reply");
        run.add(following(run.exchanges()[0], "go on with the one"), "gone on");
        QVERIFY(run.lines()[1].find("\"after\"") == std::string::npos); // nothing in common
        QVERIFY(run.lines()[2].find("\"after\":1,\"messages\"") != std::string::npos);
        run.add(question("a new chat with the same rules"), "new");
        QVERIFY(run.lines()[3].find("\"keep\":0,\"messages\"") != std::string::npos);
        QCOMPARE(timesIn(run.text(), "You answer.\""), 1);
        compare(run);
    }

    void keepsEveryField_data()
    {
        QTest::addColumn<int>("change");
        QTest::addColumn<QString>("written");
        QTest::newRow("the same again") << 0 << R"("request":{"after":1,"keep":3})";
        QTest::newRow("purpose") << 1 << R"("purpose":"other")";
        QTest::newRow("model") << 2 << R"("model":"other")";
        QTest::newRow("system") << 3 << R"("system":"Other.")";
        QTest::newRow("cached system") << 4 << R"("cache_system":false)";
        QTest::newRow("marks") << 5 << R"("cache":[1,3])";
        QTest::newRow("tokens") << 6 << R"("max_output_tokens":7)";
        QTest::newRow("temperature") << 7 << R"("temperature":1.5)";
        QTest::newRow("no temperature") << 8 << R"("temperature":null)";
        QTest::newRow("another reply") << 9 << R"("keep":3,"messages":[{"role":"assistant","text":"short"},)";
        QTest::newRow("an earlier point")
            << 10 << R"("keep":1,"messages":[{"role":"assistant","text":"b2"},)";
    }

    void keepsEveryField()
    {
        QFETCH(int, change);
        QFETCH(QString, written);
        Request request = question("a");
        request.messages.push_back({Role::Assistant, "b", false});
        request.messages.push_back({Role::User, "c", false});
        request.temperature = 0.5;
        Run run;
        run.add(request, "a long reply");
        switch (change) {
        case 1:
            request.purpose = "other";
            break;
        case 2:
            request.model = "other";
            break;
        case 3:
            request.system = "Other.";
            break;
        case 4:
            request.cacheSystem = false;
            break;
        case 5:
            request.messages[0].cacheUpToHere = request.messages[2].cacheUpToHere = true;
            break;
        case 6:
            request.maxOutputTokens = 7;
            break;
        case 7:
            request.temperature = 1.5;
            break;
        case 8:
            request.temperature.reset();
            break;
        case 9:
            request = following(run.exchanges()[0], "d");
            request.messages[3].text = "short";
            break;
        case 10:
            request.messages[1].text = "b2";
            break;
        default:
            break;
        }
        run.add(request, "again");
        QVERIFY2(run.lines()[1].find(written.toStdString()) != std::string::npos, run.lines()[1].c_str());
        compare(run);
    }

    /// The older form, in which each line has all of its request, and its keys are in alphabetical order.
    void readsWholeRequests()
    {
        Request second = question("one");
        second.messages.push_back({Role::Assistant, "two", false});
        second.messages.push_back({Role::User, "three", false});
        const auto line = [](int number, const Request &request, const std::string &messages) {
            // moc loses its way in raw strings with an odd number of quotes.
            const std::string quoted = '"' + fingerprint(request) + '"';
            return R"({"fingerprint":)" + quoted + R"(,"micro_dollars":0,"number":)" + std::to_string(number)
                   + R"(,"provider":"exec","reply":{"model":"","request_id":"","seconds":1.5,"stop":"end",)"
                   + R"("text":"two"},"request":{"cache_system":true,"max_output_tokens":1000,"messages":[)"
                   + messages + R"(],"model":"model-1","purpose":"test","system":"You answer."},"time":"t"})"
                   + '\n';
        };
        const std::string one = R"({"role":"user","text":"one"})";
        const auto read = readBack(
            line(1, question("one"), one)
            + line(
                2, second,
                one + R"(,{"role":"assistant","text":"two"},{"cache":true,"role":"user","text":"three"})"));
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        second.messages[2].cacheUpToHere = true;
        QVERIFY(isSame(read->at(0).request, question("one")));
        QVERIFY(isSame(read->at(1).request, second));
    }

    void refusesWhatDoesNotFit_data()
    {
        QTest::addColumn<int>("line");
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("message");
        const QString after = R"("after":1,)";
        QTest::newRow("first") << 0 << R"("request":{)"
                               << R"("request":{"after":1,)"
                               << "this is the first";
        QTest::newRow("itself") << 1 << after << R"("after":2,)"
                                << "'request.after' is 2; a number from 1 to 1 was expected";
        QTest::newRow("nobody") << 1 << after << R"("after":0,)"
                                << "'request.after' is 0; a number from 1 to 1 was expected";
        QTest::newRow("negative") << 1 << after << R"("after":-1,)"
                                  << "'request.after' is -1; a whole number from 0";
        QTest::newRow("a text") << 1 << after << R"("after":"1",)"
                                << "a whole number was expected";
        QTest::newRow("too much kept") << 1 << after << R"("after":1,"keep":3,)"
                                       << "from 0 to 2 was expected";
        QTest::newRow("less kept") << 1 << after << R"("after":1,"keep":1,)"
                                   << "was the transcript edited?";
        QTest::newRow("marks") << 1 << after << R"("after":1,"cache":[3],)"
                               << "none of a message kept";
        QTest::newRow("unknown key") << 1 << after << R"("after":1,"keeps":1,)"
                                     << "did you mean 'keep'?";
        QTest::newRow("keep alone") << 0 << R"("request":{)"
                                    << R"("request":{"keep":1,)"
                                    << "unknown key 'keep'";
    }

    void refusesWhatDoesNotFit()
    {
        QFETCH(int, line);
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, message);
        Run run;
        run.add(question("one"), "two");
        run.add(following(run.exchanges()[0], "three"), "four");
        std::string text;
        for (int i = 0; i < 2; ++i) {
            QString shown = QString::fromStdString(run.lines()[static_cast<std::size_t>(i)]);
            QVERIFY(i != line || shown.contains(from));
            text += (i == line ? shown.replace(from, to) : shown).toStdString() + '\n';
        }
        const auto read = readBack(text);
        QVERIFY(!read);
        QCOMPARE(read.error().code, ErrorCode::InvalidInput);
        QVERIFY2(read.error().message.find(message.toStdString()) != std::string::npos,
                 read.error().message.c_str());
    }

    void refusesChatsThatAreTooLong()
    {
        Run run;
        Request longest = question("0");
        while (longest.messages.size() + 2 <= maxMessages) {
            longest.messages.push_back({Role::Assistant, "x", false});
            longest.messages.push_back({Role::User, "y", false});
        }
        run.add(longest, "reply");
        run.add(following(run.exchanges()[0], "one too many"), "reply");
        const auto read = readBack(run.text());
        QVERIFY(!read);
        QVERIFY2(read.error().message.find("a chat of more than 1024 messages") != std::string::npos,
                 read.error().message.c_str());
    }

    /// Whatever is asked in whatever order reads back as it was written.
    void anyOrderOfChats()
    {
        std::mt19937 random(22);
        const auto pick = [&random](std::size_t count) { return random() % count; };
        const std::vector<std::string> words{"a", "b", "a longer text", "\xf0\x9f\x98\x80 text", "\"\\\n"};
        const auto word = [&] { return words[pick(words.size())]; };
        for (int round = 0; round < 200; ++round) {
            Run run;
            for (int i = 0; i < 12; ++i) {
                Request request = question(word());
                if (i > 0 && pick(4) != 0) {
                    const Exchange &earlier = run.exchanges()[pick(run.exchanges().size())];
                    request = pick(2) ? following(earlier, word()) : earlier.request;
                    if (pick(4) == 0)
                        request.messages.resize(1 + 2 * pick((request.messages.size() + 1) / 2));
                }
                if (pick(4) == 0)
                    request.system = word();
                if (pick(4) == 0)
                    request.temperature = pick(2) ? std::optional(0.25) : std::nullopt;
                for (Message &message : request.messages)
                    message.cacheUpToHere = pick(3) == 0;
                run.add(request, pick(8) == 0 ? std::string() : word());
            }
            compare(run);
            if (QTest::currentTestFailed())
                return;
        }
    }
};

QTEST_GUILESS_MAIN(TestTranscript)
#include "tst_transcript.moc"
