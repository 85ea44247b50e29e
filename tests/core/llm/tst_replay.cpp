// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/llm/providers/replayprovider.h"
#include "tests/core/llm/scriptedprovider.h"

#include <QTemporaryDir>
#include <QTest>

using namespace klineage;
using namespace klineage::llm;

class TestReplay : public QObject
{
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    std::filesystem::path m_root;
    const std::vector<std::string> m_replies{"first\n\ttab", std::string("zero\0byte", 9),
                                             "\xc3\xa9 \U0001F600"};

private slots:
    void initTestCase()
    {
        m_root = m_folder.path().toStdString();
        ScriptedProvider provider;
        for (const std::string &text : m_replies)
            provider.answers.push_back(ScriptedProvider::reply(text, 10, 5));
        auto author = Author::open(m_root, provider, testPrices(), 1);
        for (std::size_t i = 0; i < m_replies.size(); ++i)
            QVERIFY(author->ask(question("q" + std::to_string(i))));
    }

    void answersByteForByte()
    {
        auto provider = ReplayProvider::open(m_root / "transcript.jsonl");
        QVERIFY(provider);
        QVERIFY(!(*provider)->isPaid());
        for (std::size_t i = 0; i < m_replies.size(); ++i) {
            std::string streamed;
            const auto reply = (*provider)->ask(question("q" + std::to_string(i)), {},
                                                [&](std::string_view text) { streamed += text; });
            QVERIFY(reply);
            QCOMPARE(reply->text, m_replies[i]);
            QCOMPARE(streamed, m_replies[i]);
            QCOMPARE(reply->usage, (Usage{10, 0, 0, 5}));
        }
        const auto after = (*provider)->ask(question("q3"), {});
        QCOMPARE(after.error().error.code, ErrorCode::NotFound);
        QVERIFY(!after.error().mayBeCharged);
    }

    void refusesAChangedPrompt()
    {
        auto provider = ReplayProvider::open(m_root / "transcript.jsonl");
        const auto reply = (*provider)->ask(question("Q0"), {});
        QCOMPARE(reply.error().error.code, ErrorCode::Conflict);
        QVERIFY(reply.error().error.message.find("message 1 differs at byte 1: 'q0' was recorded, 'Q0'")
                != std::string::npos);
        QVERIFY((*provider)->ask(question("q0"), {})); // the right one is still there
    }

    void anAuthorOverAReplayMakesTheSameTranscript()
    {
        auto provider = ReplayProvider::open(m_root / "transcript.jsonl");
        const std::filesystem::path copy = m_root / "copy";
        std::filesystem::create_directories(copy);
        auto author = Author::open(copy, **provider, testPrices(), 0);
        for (std::size_t i = 0; i < m_replies.size(); ++i)
            QCOMPARE(author->ask(question("q" + std::to_string(i)))->reply.text, m_replies[i]);
        QCOMPARE(author->ledger().spentDollars(), 0.0);
        const auto first = readTranscript(m_root / "transcript.jsonl");
        const auto second = readTranscript(copy / "transcript.jsonl");
        QVERIFY(first && second);
        for (std::size_t i = 0; i < m_replies.size(); ++i)
            QCOMPARE((*first)[i].fingerprint, (*second)[i].fingerprint);
    }

    void refusesWhatIsNoTranscript()
    {
        QCOMPARE(ReplayProvider::open(m_root / "none.jsonl").error().code, ErrorCode::NotFound);
        QVERIFY(files::writeFileAtomic(m_root / "bad.jsonl", "{\"number\":1}\n"));
        QCOMPARE(ReplayProvider::open(m_root / "bad.jsonl").error().code, ErrorCode::InvalidInput);
    }
};

QTEST_GUILESS_MAIN(TestReplay)
#include "tst_replay.moc"
