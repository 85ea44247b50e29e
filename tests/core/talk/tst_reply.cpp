// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/plan.h"
#include "core/talk/reply.h"

#include <QTest>

using namespace klineage;
using namespace klineage::policy;

class TestReply : public QObject
{
    Q_OBJECT

private slots:
    void candidates_data()
    {
        QTest::addColumn<QString>("reply");
        QTest::addColumn<QString>("text");
        const QString file = "/*klineage\nsurface = \"opencl\"\n*/\ncode\n";
        QTest::newRow("plain") << "```c\n" + file + "```\n" << file;
        QTest::newRow("words around it")
            << "I stage tiles.\n\n```opencl\n" + file + "```\nThat is all." << file;
        QTest::newRow("carriage returns") << "Here:\r\n```c\r\n/*klineage\r\n*/\r\ncode\r\n```\r\n"
                                          << "/*klineage\n*/\ncode\n";
        QTest::newRow("tildes") << "~~~\n" + file + "~~~" << file;
        QTest::newRow("longer fence") << "````\n/*klineage\n*/\n// ```\n// ~~~\ncode\n````"
                                      << "/*klineage\n*/\n// ```\n// ~~~\ncode\n";
        QTest::newRow("indented fence") << "  ```\n" + file + "  ```" << file;
        QTest::newRow("blank first lines") << "```\n\n  \n" + file + "```" << file;
        QTest::newRow("no fence") << "\n" + file << file;
        QTest::newRow("done is said beside it") << "DONE: nearly\n```\n" + file + "```" << file;
        QTest::newRow("inline code") << "The ```float4``` type helps.\n```\n" + file + "```" << file;
        QTest::newRow("a thought with a fence")
            << "<think>\nI could\n```c\nfloat x;\n```\nor not.\n</think>\n```c\n" + file + "```" << file;
        QTest::newRow("a thought with a candidate")
            << "<think>\n```c\n/*klineage\n*/\nold\n```\n</think>\n```c\n" + file + "```" << file;
        QTest::newRow("a thought with an open fence")
            << "<thinking>\n```c\nfloat\n</thinking>\n```c\n" + file + "```" << file;
        QTest::newRow("a thought that the template opened")
            << "First I\n```c\nfloat x;\n\n</think>\n\n```c\n" + file + "```" << file;
        QTest::newRow("two thoughts on a line")
            << "<think>a</think> <think>```\nb</think>\n```c\n" + file + "```" << file;
        QTest::newRow("a tag in the code") << "```c\n/*klineage\n*/\n// <think> </think>\n<think>\ncode\n```"
                                           << "/*klineage\n*/\n// <think> </think>\n<think>\ncode\n";
        QTest::newRow("a thought before a bare file") << "<think>hm\n</think>\n" + file << file;
        QTest::newRow("an example after it") << "```c\n" + file + "```\nTry it:\n```sh\nmake\n```\n" << file;
        QTest::newRow("an example before it") << "```\n- a\n```\n\n```c\n" + file + "```" << file;
        QTest::newRow("the last candidate")
            << "```\n/*klineage\nsurface = \"opencl\"\n*/\nold\n```\nBetter:\n" + QString("```\n") + file
                   + "```"
            << file;
        QTest::newRow("an open example after it") << "```\n" + file + "```\nSo:\n```sh\nmake" << file;
    }

    void candidates()
    {
        QFETCH(QString, reply);
        QFETCH(QString, text);
        const Result<Reading> reading = readCandidateReply(reply.toStdString());
        QVERIFY2(reading, reading ? "" : reading.error().message.c_str());
        QVERIFY(reading->kind == Reading::Kind::Block);
        QCOMPARE(QString::fromStdString(reading->text), text);
    }

    void done_data()
    {
        QTest::addColumn<QString>("reply");
        QTest::addColumn<QString>("reason");
        QTest::newRow("bare") << "DONE"
                              << "";
        QTest::newRow("reason") << "DONE: memory bound already."
                                << "memory bound already.";
        QTest::newRow("after words") << "I looked at it.\n\n**DONE** — \nmore"
                                     << "— ";
        QTest::newRow("indented") << "  DONE - nothing"
                                  << "nothing";
    }

    void done()
    {
        QFETCH(QString, reply);
        QFETCH(QString, reason);
        const Result<Reading> reading = readCandidateReply(reply.toStdString());
        QVERIFY2(reading, reading ? "" : reading.error().message.c_str());
        QVERIFY(reading->kind == Reading::Kind::Done);
        QCOMPARE(QString::fromStdString(reading->text).trimmed(), reason.trimmed());
    }

    void refused_data()
    {
        QTest::addColumn<QByteArray>("reply");
        QTest::addColumn<QString>("expected");
        QTest::newRow("empty") << QByteArray() << "no fenced block";
        QTest::newRow("words") << QByteArray("I would stage tiles. NOT DONE, UNDONE") << "no fenced block";
        QTest::newRow("DONEness") << QByteArray("DONENESS is near") << "no fenced block";
        QTest::newRow("two blocks, no candidate") << QByteArray("```\na\n```\n```\nb\n```") << "'/*klineage'";
        QTest::newRow("the second candidate is cut")
            << QByteArray("```\n/*klineage\n*/\na\n```\n```\n/*klineage\n*/\nb") << "not closed";
        QTest::newRow("only thoughts") << QByteArray("<think>\n```\n/*klineage\n*/\n```\n") << "its thoughts";
        QTest::newRow("nothing after the thoughts")
            << QByteArray("<think>\n```\n/*klineage\n*/\n```\n</think>") << "no fenced block";
        QTest::newRow("open") << QByteArray("```c\n/*klineage\n*/\ncode") << "not closed";
        QTest::newRow("other fence") << QByteArray("```c\n/*klineage\n*/\ncode\n~~~") << "not closed";
        QTest::newRow("shorter fence") << QByteArray("````c\n/*klineage\n*/\ncode\n```") << "not closed";
        QTest::newRow("a diff") << QByteArray("```diff\n- a\n+ b\n```") << "'/*klineage'";
        QTest::newRow("empty block") << QByteArray("```\n```") << "'/*klineage'";
        QTest::newRow("NUL") << QByteArray("```\n/*klineage\0\n```", 19) << "NUL";
        QTest::newRow("too long") << QByteArray(9 << 20, 'x') << "8 MiB";
        QTest::newRow("candidate too long") << "```\n/*klineage" + QByteArray(5 << 20, 'x') + "\n```"
                                            << "4 MiB";
    }

    void refused()
    {
        QFETCH(QByteArray, reply);
        QFETCH(QString, expected);
        const Result<Reading> reading = readCandidateReply(reply.toStdString());
        QVERIFY(!reading);
        QVERIFY2(QString::fromStdString(reading.error().message).contains(expected),
                 reading.error().message.c_str());
        QVERIFY(reading.error().message.ends_with('.'));
    }

    void ofSeveralBlocksTheLastThatIsAcceptedCounts()
    {
        const std::string reply = "```\none\n```\n```\ntwo\n```\n```\nthree\n```\n";
        QCOMPARE(readReply(reply)->text, std::string("three\n"));
        const auto isShort = [](const std::string &block) { return block.size() == 4; };
        QCOMPARE(readReply(reply, isShort)->text, std::string("two\n"));
        QCOMPARE(readReply(reply, [](const std::string &) { return false; })->text, std::string("three\n"));
    }

    void thoughtsAreLeftOut()
    {
        QCOMPARE(withoutThoughts("no tags\r\n"), std::string("no tags\r\n"));
        QCOMPARE(withoutThoughts("<think>a\nb</think>\nsaid\n"), std::string("\nsaid\n"));
        QCOMPARE(withoutThoughts("said\n<think>and on"), std::string("said\n"));
        QCOMPARE(withoutThoughts("a </think> b"), std::string(" b\n"));
    }

    void normalized_data()
    {
        QTest::addColumn<QString>("a");
        QTest::addColumn<QString>("b");
        QTest::addColumn<bool>("same");
        const QString plan = "/*klineage\nsurface = \"opencl\"\n*/\n";
        QTest::newRow("comments") << plan + "int a; // x\n/* y */ int b;" << plan + "int a;\nint  b ;"
                                  << true;
        QTest::newRow("comment in the plan") << plan + "a"
                                             << "/*klineage\n# why\n  surface = \"opencl\"\n\n*/a" << true;
        QTest::newRow("code") << plan + "int a;" << plan + "int b;" << false;
        QTest::newRow("plan") << plan + "a"
                              << "/*klineage\nsurface = \"cuda\"\n*/a" << false;
        QTest::newRow("words stay apart") << plan + "int a" << plan + "inta" << false;
        QTest::newRow("directives have lines") << plan + "#define A\nB" << plan + "#define A B" << false;
    }

    void normalized()
    {
        QFETCH(QString, a);
        QFETCH(QString, b);
        QFETCH(bool, same);
        QCOMPARE(normalizedCode(a.toStdString()) == normalizedCode(b.toStdString()), same);
    }

    void plans()
    {
        const std::vector<std::string> known{"tile", "vectorize", "prefetch"};
        const Result<std::vector<PlanEntry>> plan = parsePlan(
            "# order\nvectorize: missing\n\n  tile: present - it has tiles.\nprefetch: skip (one load)\n",
            known);
        QVERIFY2(plan, plan ? "" : plan.error().message.c_str());
        QCOMPARE(plan->size(), std::size_t{3});
        QCOMPARE((*plan)[0].card, std::string("vectorize"));
        QVERIFY((*plan)[0].state == PlanEntry::State::Missing);
        QVERIFY((*plan)[1].state == PlanEntry::State::Present);
        QCOMPARE((*plan)[1].reason, std::string("it has tiles"));
        QVERIFY((*plan)[2].state == PlanEntry::State::Skip);
        QCOMPARE((*plan)[2].reason, std::string("one load"));
    }

    void badPlans_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        QTest::newRow("empty") << "# nothing\n"
                               << "is empty";
        QTest::newRow("unknown") << "tyle: missing"
                                 << "did you mean 'tile'";
        QTest::newRow("state") << "tile: perhaps"
                               << "neither missing";
        QTest::newRow("no colon") << "tile missing"
                                  << "no colon";
        QTest::newRow("twice") << "tile: missing\ntile: skip"
                               << "Line 2";
    }

    void badPlans()
    {
        QFETCH(QString, text);
        QFETCH(QString, expected);
        const Result<std::vector<PlanEntry>> plan = parsePlan(text.toStdString(), {"tile", "vectorize"});
        QVERIFY(!plan);
        QVERIFY2(QString::fromStdString(plan.error().message).contains(expected),
                 plan.error().message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestReply)
#include "tst_reply.moc"
