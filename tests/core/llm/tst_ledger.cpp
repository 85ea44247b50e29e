// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/llm/ledger.h"

#include <QTemporaryDir>
#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::llm;

class TestLedger : public QObject
{
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    std::filesystem::path m_file;

private slots:
    void init()
    {
        m_file = m_folder.path().toStdString() + "/ledger.jsonl";
        std::filesystem::remove(m_file);
    }

    void addsUp()
    {
        auto ledger = Ledger::open(m_file, 10);
        QVERIFY(ledger);
        const auto first = ledger->reserve(4, "a");
        const auto second = ledger->reserve(5, "b");
        QVERIFY(first && second);
        QVERIFY(*first != *second);
        QCOMPARE(ledger->reservedDollars(), 9.0);
        QCOMPARE(ledger->leftDollars(), 1.0);
        QVERIFY(ledger->settle(*first, 0.5, {1, 2, 3, 4}));
        QCOMPARE(ledger->spentDollars(), 0.5);
        QCOMPARE(ledger->leftDollars(), 4.5);
        const auto again = Ledger::open(m_file, 10);
        QVERIFY(again);
        QCOMPARE(again->spentDollars(), 0.5);
        QCOMPARE(again->reservedDollars(), 5.0);
        QCOMPARE(again->usage(), (Usage{1, 2, 3, 4}));
        QCOMPARE(again->requests(), 1);
        QVERIFY(again->isOpen(*second) && !again->isOpen(*first) && again->knows(*first));
    }

    void sumsHaveNoRounding()
    {
        auto ledger = Ledger::open(m_file, 0.3);
        for (int i = 0; i < 3; ++i) { // 0.1 + 0.1 + 0.1 > 0.3 in doubles
            const auto id = ledger->reserve(0.1, "a");
            QVERIFY(id);
            QVERIFY(ledger->settle(*id, 0.1, {}));
        }
        QCOMPARE(ledger->leftDollars(), 0.0);
        QVERIFY(!ledger->reserve(1e-6, "a"));
        QVERIFY(ledger->reserve(0, "free"));
    }

    void roundsUp_data()
    {
        QTest::addColumn<double>("dollars");
        QTest::addColumn<qint64>("micro");
        QTest::newRow("zero") << 0.0 << qint64(0);
        QTest::newRow("exact") << 0.000123 << qint64(123);
        QTest::newRow("exact but for the double") << 0.1 + 0.2 << qint64(300000);
        QTest::newRow("a part") << 1.2e-6 << qint64(2);
        QTest::newRow("a small part") << 1.001e-6 << qint64(2);
    }
    void roundsUp()
    {
        QFETCH(double, dollars);
        QTEST(qint64(microDollars(dollars)), "micro");
    }

    void neverPassesTheCap()
    {
        auto ledger = Ledger::open(m_file, 1);
        QVERIFY(ledger->reserve(0.6, "a"));
        const auto over = ledger->reserve(0.400001, "b");
        QCOMPARE(over.error().code, ErrorCode::Budget);
        QCOMPARE(over.error().message,
                 std::string("The budget of $1.00 has $0.40 left; a request that can cost up to $0.400001 is "
                             "not sent."));
        QVERIFY(ledger->reserve(0.4, "b"));
    }

    void refusesAmountsThatAreNone_data()
    {
        QTest::addColumn<double>("dollars");
        QTest::newRow("negative") << -0.1;
        QTest::newRow("nan") << std::nan("");
        QTest::newRow("infinite") << std::numeric_limits<double>::infinity();
        QTest::newRow("huge") << 1e30;
    }
    void refusesAmountsThatAreNone()
    {
        QFETCH(double, dollars);
        QVERIFY(!Ledger::open(m_file, dollars));
        auto ledger = Ledger::open(m_file, 1);
        QCOMPARE(ledger->reserve(dollars, "a").error().code, ErrorCode::Internal);
        const auto id = ledger->reserve(0.5, "a");
        QVERIFY(!ledger->settle(*id, dollars, {}));
        QVERIFY(ledger->isOpen(*id));
        QVERIFY(ledger->settle(*id, 0.5, {}));
        QVERIFY(!ledger->settle(*id, 0.5, {}));
    }

    void settlesAtMostTheReservation()
    {
        auto ledger = Ledger::open(m_file, 1);
        const auto id = ledger->reserve(0.5, "a");
        QVERIFY(!ledger->settle(*id, 0.500001, {}));
        QCOMPARE(ledger->reservedDollars(), 0.5);
        QVERIFY(!ledger->settle("r99", 0.1, {}));
    }

    void refusesForeignLines_data()
    {
        const QString reserve = R"({"reserve":{"id":"r1","time":"t","micro_dollars":5,"purpose":"p"}})"
                                "\n";
        const QString settle =
            R"({"settle":{"id":"r1","time":"t","micro_dollars":5,"usage":{"input":1,"cache_read":0,"cache_write":0,"output":1}}})"
            "\n";
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        QTest::newRow("sound") << reserve + settle << "";
        QTest::newRow("twice") << reserve + reserve << ":2:1: the reservation 'r1' is there twice.";
        QTest::newRow("settled twice")
            << reserve + settle + settle << ":3:1: the reservation 'r1' is settled twice.";
        QTest::newRow("never made") << settle << "is settled but was never made.";
        QString more = settle;
        QTest::newRow("too much") << reserve + more.replace("\"micro_dollars\":5", "\"micro_dollars\":6")
                                  << "for more than was reserved.";
        QTest::newRow("unknown") << "{\"reserv\":{}}\n"
                                 << "missing";
        more = reserve;
        QTest::newRow("negative") << more.replace(":5", ":-5") << "whole number from 0";
        more = reserve;
        QTest::newRow("huge") << more.replace(":5", ":1e300") << "micro_dollars";
        more = reserve;
        QTest::newRow("unknown key") << more.replace("\"purpose\"", "\"purpos\":\"\",\"purpose\"")
                                     << "unknown key 'purpos'";
        QTest::newRow("no JSON") << "reserve\n"
                                 << "not a JSON object";
        QTest::newRow("torn") << reserve + settle.left(40) << "";
    }
    void refusesForeignLines()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        QVERIFY(files::writeFileAtomic(m_file, text.toStdString()));
        const auto ledger = Ledger::open(m_file, 1);
        QCOMPARE(ledger.has_value(), message.isEmpty());
        if (!ledger) {
            QCOMPARE(ledger.error().code, ErrorCode::InvalidInput);
            QVERIFY2(ledger.error().message.find(message.toStdString()) != std::string::npos,
                     ledger.error().message.c_str());
        }
    }

    void aFileThatCannotBeWrittenSendsNothing()
    {
        auto ledger = Ledger::open(m_folder.path().toStdString() + "/missing/ledger.jsonl", 1);
        QVERIFY(ledger);
        QVERIFY(!ledger->reserve(0.1, "a"));
        QCOMPARE(ledger->reservedDollars(), 0.0);
    }
};

QTEST_GUILESS_MAIN(TestLedger)
#include "tst_ledger.moc"
