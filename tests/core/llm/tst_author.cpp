// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/files/jsonlines.h"
#include "core/llm/author.h"
#include "tests/core/llm/scriptedprovider.h"
#include "tests/patience.h"

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <thread>

using namespace klineage;
using namespace klineage::llm;

class TestAuthor : public QObject
{
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    ScriptedProvider m_provider;
    int m_count = 0;

    std::filesystem::path folder() const
    {
        return m_folder.path().toStdString() + "/" + std::to_string(m_count);
    }
    Result<Author> open(double cap = 1)
    {
        Result<Author> author = Author::open(folder(), m_provider, testPrices(), cap);
        if (author)
            author->setRetries(2, 0.001);
        return author;
    }
    std::string read(const char *name) const
    {
        return files::readFile(folder() / name, 1 << 24).value_or(std::string());
    }
    void write(const char *name, const std::string &text) const
    {
        QVERIFY(files::writeFileAtomic(folder() / name, text));
    }
    std::size_t lineCount(const char *name) const
    {
        const std::string text = read(name);
        return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    }

private slots:
    void init()
    {
        ++m_count;
        std::filesystem::create_directories(folder());
        m_provider = ScriptedProvider();
    }

    void asksAndWritesDown()
    {
        m_provider.answers = {ScriptedProvider::reply("forty-two", 100, 7)};
        auto author = open();
        QVERIFY(author);
        std::string streamed;
        const auto exchange =
            author->ask(question("what?"), {}, [&](std::string_view text) { streamed += text; });
        QVERIFY(exchange);
        QCOMPARE(exchange->number, 1);
        QCOMPARE(exchange->reply.text, std::string("forty-two"));
        QCOMPARE(exchange->dollars, 170e-6);
        QCOMPARE(streamed, exchange->reply.text);
        QCOMPARE(author->ledger().spentDollars(), 170e-6);
        QCOMPARE(author->ledger().reservedDollars(), 0.0);
        QCOMPARE(author->ledger().usage(), (Usage{100, 0, 0, 7}));
        QCOMPARE(lineCount("transcript.jsonl"), 1);
        QCOMPARE(lineCount("ledger.jsonl"), 2);
    }

    void answersFromTheTranscriptFreeOfCharge()
    {
        m_provider.answers = {ScriptedProvider::reply("one \xff", 100, 7),
                              ScriptedProvider::reply("two", 10, 1), ScriptedProvider::reply("three", 10, 1)};
        std::string first;
        {
            auto author = open();
            first = writeExchange(*author->ask(question("a")));
            QVERIFY(author->ask(question("b")));
        }
        const std::string transcript = read("transcript.jsonl");
        auto author = open();
        QVERIFY(author->isReplaying());
        const double spent = author->ledger().spentDollars();
        const auto again = author->ask(question("a"));
        QVERIFY(again);
        QCOMPARE(writeExchange(*again), first);
        QCOMPARE(again->reply.text, std::string("one \xef\xbf\xbd"));
        QCOMPARE(author->ask(question("b"))->reply.text, std::string("two"));
        QVERIFY(!author->isReplaying());
        QCOMPARE(read("transcript.jsonl"), transcript);
        QCOMPARE(author->ledger().spentDollars(), spent);
        QCOMPARE(m_provider.asked.size(), 2);
        QCOMPARE(author->ask(question("c"))->number, 3);
        QCOMPARE(m_provider.asked.size(), 3);
    }

    void refusesAnotherPrompt()
    {
        m_provider.answers = {ScriptedProvider::reply("one", 100, 7)};
        QVERIFY(open()->ask(question("tile the loop by 16")));
        auto author = open();
        const auto other = author->ask(question("tile the loop by 32"));
        QVERIFY(!other);
        QCOMPARE(other.error().code, ErrorCode::Conflict);
        QVERIFY(other.error().message.find("message 1 differs at byte 18") != std::string::npos);
        QVERIFY(other.error().detail.find(fingerprint(question("tile the loop by 32"))) != std::string::npos);
        QVERIFY(author->isReplaying()); // the right one can still be asked
        QVERIFY(author->ask(question("tile the loop by 16")));
    }

    void sendsNothingThatCouldPassTheCap()
    {
        const double most = mostDollars(testPrices().prices[0], question("a"));
        auto author = open(most * 0.999);
        const auto refused = author->ask(question("a"));
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, ErrorCode::Budget);
        QCOMPARE(m_provider.asked.size(), 0);
        QCOMPARE(read("ledger.jsonl"), std::string());
        m_provider.answers = {ScriptedProvider::reply("a", 1, 1)};
        QVERIFY(open(most + 1e-6)->ask(question("a")));
    }

    void failures_data()
    {
        QTest::addColumn<bool>("mayBeCharged");
        QTest::addColumn<bool>("counted");
        QTest::addColumn<int>("code");
        QTest::addColumn<int>("asked");
        QTest::addColumn<double>("spent");
        const double most = mostDollars(testPrices().prices[0], question("a"));
        const auto codeOf = [](ErrorCode code) { return static_cast<int>(code); };
        QTest::newRow("refused") << false << false << codeOf(ErrorCode::Unavailable) << 1 << 0.0;
        QTest::newRow("broken stream") << true << false << codeOf(ErrorCode::Protocol) << 3 << 3 * most;
        QTest::newRow("cancelled under way") << true << false << codeOf(ErrorCode::Cancelled) << 1 << most;
        QTest::newRow("counted, of no use") << false << true << codeOf(ErrorCode::Protocol) << 1 << 110e-6;
    }

    void failures()
    {
        QFETCH(bool, mayBeCharged);
        QFETCH(bool, counted);
        QFETCH(int, code);
        ProviderFailure failure{{static_cast<ErrorCode>(code), "It broke.", {}}, {}, mayBeCharged};
        if (counted)
            failure.usage = Usage{10, 0, 0, 10};
        m_provider.answers.assign(3, tl::unexpected(failure));
        auto author = open();
        const auto reply = author->ask(question("a"));
        QVERIFY(!reply);
        QCOMPARE(static_cast<int>(reply.error().code), code);
        QTEST(static_cast<int>(m_provider.asked.size()), "asked");
        QTEST(author->ledger().spentDollars(), "spent");
        QCOMPARE(author->ledger().reservedDollars(), 0.0);
        QCOMPARE(lineCount("transcript.jsonl"), 0);
        QCOMPARE(open()->ledger().spentDollars(), author->ledger().spentDollars());
    }

    void asksAgainAfterABrokenStream()
    {
        m_provider.answers = {ScriptedProvider::failure(ErrorCode::Timeout, "Silence.", true),
                              ScriptedProvider::reply("there", 100, 1)};
        auto author = open();
        const auto reply = author->ask(question("a"));
        QVERIFY(reply);
        QCOMPARE(reply->number, 1);
        const double most = mostDollars(testPrices().prices[0], question("a"));
        QCOMPARE(author->ledger().spentDollars(), most + 110e-6);
    }

    void aStopEndsThePauseBeforeAsking()
    {
        m_provider.answers.assign(3, ScriptedProvider::failure(ErrorCode::Timeout, "Silence.", true));
        auto author = open();
        author->setRetries(2, 600);
        std::stop_source stop;
        std::jthread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            stop.request_stop();
        });
        QElapsedTimer timer;
        timer.start();
        QCOMPARE(author->ask(question("a"), stop.get_token()).error().message, std::string("Silence."));
        QVERIFY(timer.elapsed() < patienceMs);
        QCOMPARE(m_provider.asked.size(), 1);
    }

    void saysWhatBrokeWhenNoMoneyIsLeftToTryAgain()
    {
        m_provider.answers.assign(3, ScriptedProvider::failure(ErrorCode::Timeout, "Silence.", true));
        const double most = mostDollars(testPrices().prices[0], question("a"));
        auto author = open(most * 1.5);
        const auto reply = author->ask(question("a"));
        QCOMPARE(reply.error().message, std::string("Silence."));
        QVERIFY(reply.error().detail.find("The budget") != std::string::npos);
        QCOMPARE(m_provider.asked.size(), 1);
    }

    void wrongUsageCountsTheMost_data()
    {
        QTest::addColumn<qint64>("input");
        QTest::addColumn<qint64>("output");
        QTest::newRow("negative") << qint64(-5) << qint64(10);
        QTest::newRow("nothing came in") << qint64(0) << qint64(10);
        QTest::newRow("a text of no tokens") << qint64(10) << qint64(0);
        QTest::newRow("more than was allowed") << qint64(10) << qint64(100'000);
        QTest::newRow("absurd") << std::numeric_limits<qint64>::max() << std::numeric_limits<qint64>::max();
    }

    void wrongUsageCountsTheMost()
    {
        QFETCH(qint64, input);
        QFETCH(qint64, output);
        m_provider.answers = {ScriptedProvider::reply("text", input, output)};
        auto author = open();
        const auto reply = author->ask(question("a"));
        QVERIFY(reply);
        QVERIFY(!reply->reply.usageKnown);
        QCOMPARE(microDollars(reply->dollars),
                 microDollars(mostDollars(testPrices().prices[0], question("a"))));
        QCOMPARE(author->ledger().usage(), Usage());
        QCOMPARE(open()->ask(question("a"))->reply.usageKnown, false);
    }

    void unpaidProvidersNeedNoPrice()
    {
        m_provider.paid = false;
        m_provider.answers = {ScriptedProvider::reply("text", 5, 6)};
        Request request = question("a");
        request.model = "unheard-of";
        auto author = open(0);
        const auto reply = author->ask(request);
        QVERIFY(reply);
        QCOMPARE(reply->dollars, 0.0);
        QCOMPARE(author->ledger().usage(), (Usage{5, 0, 0, 6}));
    }

    void unknownModelSaysHowToAddIt()
    {
        Request request = question("a");
        request.model = "unheard-of";
        const auto reply = open()->ask(request);
        QCOMPARE(reply.error().code, ErrorCode::NotFound);
        QVERIFY(reply.error().message.find("'unheard-of'") != std::string::npos);
        QVERIFY(reply.error().detail.find("[[model]]\nname = \"unheard-of\"") != std::string::npos);
        QCOMPARE(m_provider.asked.size(), 0);
    }

    /// Every prefix of what two exchanges wrote, at line ends and inside of lines, is a place where a kill can come.
    void killBetweenAnyTwoWrites()
    {
        m_provider.answers = {ScriptedProvider::reply("one", 100, 7)};
        QVERIFY(open()->ask(question("a")));
        const std::string ledger = read("ledger.jsonl");
        const std::string transcript = read("transcript.jsonl");
        const std::size_t reserved = ledger.find('\n') + 1;
        const double most = mostDollars(testPrices().prices[0], question("a"));
        struct Case {
            std::string ledger, transcript;
            double spent, reserved;
            bool replays;
        };
        const std::vector<Case> cases{
            {"", "", 0, 0, false},
            {ledger.substr(0, reserved / 2), "", 0, 0, false},
            {ledger.substr(0, reserved), "", 0, most, false},
            {ledger.substr(0, reserved), transcript.substr(0, 100), 0, most, false},
            {ledger.substr(0, reserved), transcript, 170e-6, 0, true},
            {ledger.substr(0, reserved + 20), transcript, 170e-6, 0, true},
            {ledger, transcript, 170e-6, 0, true},
            {"", transcript, 170e-6, 0, true}, // the ledger was lost: what the transcript proves is adopted
        };
        for (const Case &at : cases) {
            init();
            m_provider.answers = {ScriptedProvider::reply("one", 100, 7)};
            write("ledger.jsonl", at.ledger);
            write("transcript.jsonl", at.transcript);
            auto author = open();
            QVERIFY2(author, author ? "" : author.error().message.c_str());
            QCOMPARE(author->ledger().spentDollars(), at.spent);
            QCOMPARE(author->ledger().reservedDollars(), at.reserved);
            QCOMPARE(author->isReplaying(), at.replays);
            QCOMPARE(author->ask(question("a"))->reply.text, std::string("one"));
            QCOMPARE(m_provider.asked.size(), at.replays ? 0 : 1);
            QCOMPARE(open()->ledger().spentDollars(), 170e-6);
            QCOMPARE(open()->ledger().reservedDollars(), at.reserved);
        }
    }

    void refusesATranscriptThatWasEdited_data()
    {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("message");
        QTest::newRow("prompt") << "\"text\":\"a\""
                                << "\"text\":\"b\""
                                << "was the transcript edited?";
        QTest::newRow("number") << "\"number\":1"
                                << "\"number\":2"
                                << "1 was expected.";
        QTest::newRow("unknown key") << "\"number\""
                                     << "\"extra\":1,\"number\""
                                     << "unknown key 'extra'";
        QTest::newRow("stop") << "\"stop\":\"end\""
                              << "\"stop\":\"ende\""
                              << "did you mean 'end'?";
        QTest::newRow("dollars") << "\"micro_dollars\":170"
                                 << "\"micro_dollars\":-1"
                                 << "whole number from 0";
    }

    void refusesATranscriptThatWasEdited()
    {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, message);
        m_provider.answers = {ScriptedProvider::reply("one", 100, 7)};
        QVERIFY(open()->ask(question("a")));
        QString text = QString::fromStdString(read("transcript.jsonl"));
        QVERIFY(text.contains(from));
        write("transcript.jsonl", text.replace(from, to).toStdString());
        const auto author = open();
        QVERIFY(!author);
        QCOMPARE(author.error().code, ErrorCode::InvalidInput);
        QVERIFY2(author.error().message.find(message.toStdString()) != std::string::npos,
                 author.error().message.c_str());
    }

    void repliesThatAreTooLongAreCharged()
    {
        m_provider.answers.assign(3, ScriptedProvider::reply(std::string(maxReplyBytes + 1, 'x'), 1, 1));
        auto author = open();
        author->setRetries(0, 0);
        const auto reply = author->ask(question("a"));
        QCOMPARE(reply.error().code, ErrorCode::Protocol);
        QVERIFY(author->ledger().spentDollars() > 0.01);
    }
};

QTEST_GUILESS_MAIN(TestAuthor)
#include "tst_author.moc"
