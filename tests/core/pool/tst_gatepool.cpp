// SPDX-License-Identifier: GPL-3.0-or-later
//
// The queue in front of the gates: order, place, cancel, and a gate that is lost. The gates are a script that answers what it is told.
#include "tests/core/pool/fakegate.h"
#include "tests/patience.h"

#include <QTemporaryDir>
#include <QtTest>

#include <memory>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::gate::test;
namespace fs = std::filesystem;

class TestGatePool : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void inTheOrderOfAsking();
    void theNextOnesAreCompiledMeanwhile();
    void whoWaitsIsToldOfComingNearer();
    void twoGatesWorkSideBySide();
    void aCancelledWaitLeavesTheQueue();
    void aCancelledTrialLeavesTheGateWarm();
    void aTrialThatTheGateCancelledLeavesItWarm();
    void aLostGateIsStartedAnew();
    void aGateThatCannotStartIsAnError();

private:
    void askInTurn(GatePool &pool, int count, std::vector<std::unique_ptr<Asked>> &asked) const;
    [[nodiscard]] GateSpec spec() const { return {{}, m_gate->program()}; }
    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<FakeGateFolder> m_gate;
};

void TestGatePool::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    m_gate = std::make_unique<FakeGateFolder>(m_folder->path().toStdString());
}

/// T0, T1 and so on of a gate that holds the first: each asks when the one before it has been heard. Fewer when one is not.
void TestGatePool::askInTurn(GatePool &pool, int count, std::vector<std::unique_ptr<Asked>> &asked) const
{
    for (int i = 0; i < count; ++i) {
        auto next = std::make_unique<Asked>(pool, fakeRequest("T" + std::to_string(i)));
        if (i == 0)
            QTRY_COMPARE(m_gate->begun().size(), std::size_t{1});
        else
            QTRY_VERIFY(next->wasTold("waiting for a gate, place " + std::to_string(i) + " in the queue"));
        asked.push_back(std::move(next));
    }
}

void TestGatePool::inTheOrderOfAsking()
{
    GatePool pool({spec()});
    m_gate->hold();
    std::vector<std::unique_ptr<Asked>> asked;
    askInTurn(pool, 5, asked);
    QCOMPARE(asked.size(), std::size_t{5});
    m_gate->release();
    for (const auto &each : asked) {
        const auto trial = each->result();
        QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
        QCOMPARE(trial->verdict.status, VerdictStatus::Correct);
    }
    const auto lines = m_gate->begun();
    QCOMPARE(lines.size(), std::size_t{5});
    for (std::size_t i = 0; i < lines.size(); ++i) {
        QCOMPARE(lines[i].first, "T" + std::to_string(i));
        QCOMPARE(lines[i].second, lines[0].second);
    }
}

/// A gate hears of two that wait before each of its trials, of each once, and of none that no longer waits.
void TestGatePool::theNextOnesAreCompiledMeanwhile()
{
    GatePool pool({spec()});
    m_gate->hold();
    std::vector<std::unique_ptr<Asked>> asked;
    askInTurn(pool, 5, asked);
    QCOMPARE(asked.size(), std::size_t{5});
    QVERIFY(m_gate->prepared().empty());
    m_gate->releaseOne();
    QTRY_COMPARE(m_gate->prepared(), (std::vector<std::string>{"T2", "T3"}));
    m_gate->release();
    for (const auto &each : asked)
        QVERIFY(each->result());
    QCOMPARE(m_gate->prepared(), (std::vector<std::string>{"T2", "T3", "T4"}));
    QCOMPARE(m_gate->begun().size(), std::size_t{5});
}

void TestGatePool::whoWaitsIsToldOfComingNearer()
{
    GatePool pool({spec()});
    m_gate->hold();
    std::vector<std::unique_ptr<Asked>> asked;
    askInTurn(pool, 4, asked);
    QCOMPARE(asked.size(), std::size_t{4});
    for (int place = 2; place > 0; --place) {
        m_gate->releaseOne();
        QTRY_VERIFY2(asked[3]->wasTold("place " + std::to_string(place) + " in"), asked[3]->told().c_str());
    }
    m_gate->release();
    for (const auto &each : asked)
        QVERIFY(each->result());
}

void TestGatePool::twoGatesWorkSideBySide()
{
    GatePool pool({spec(), spec()});
    m_gate->hold();
    std::vector<std::unique_ptr<Asked>> asked;
    for (int i = 0; i < 6; ++i)
        asked.push_back(std::make_unique<Asked>(pool, fakeRequest("T" + std::to_string(i))));
    QTRY_COMPARE(m_gate->begun().size(), std::size_t{2});
    QVERIFY(m_gate->begun()[0].second != m_gate->begun()[1].second);
    m_gate->release();
    for (const auto &each : asked)
        QVERIFY(each->result());
    QCOMPARE(m_gate->begun().size(), std::size_t{6});
}

void TestGatePool::aCancelledWaitLeavesTheQueue()
{
    GatePool pool({spec()});
    m_gate->hold();
    Asked first(pool, fakeRequest("first"));
    QTRY_COMPARE(m_gate->begun().size(), std::size_t{1});
    Asked second(pool, fakeRequest("second"));
    QTRY_VERIFY(second.wasTold("waiting for a gate"));
    second.cancel();
    const auto ended = second.result();
    QVERIFY(!ended);
    QCOMPARE(ended.error().code, ErrorCode::Cancelled);
    m_gate->release();
    QVERIFY(first.result());
    QVERIFY(pool.run(fakeRequest("third")));
    const auto lines = m_gate->begun();
    QCOMPARE(lines.size(), std::size_t{2});
    QCOMPARE(lines[1].first, std::string("third"));
}

void TestGatePool::aCancelledTrialLeavesTheGateWarm()
{
    GatePool pool({spec()});
    m_gate->hold();
    Asked first(pool, fakeRequest("first"));
    QTRY_COMPARE(m_gate->begun().size(), std::size_t{1});
    first.cancel();
    writeText(m_gate->path() / "cancelled", "");
    const auto ended = first.result();
    QVERIFY(!ended);
    QCOMPARE(ended.error().code, ErrorCode::Cancelled);
    fs::remove(m_gate->path() / "cancelled");
    m_gate->release();
    QVERIFY(pool.run(fakeRequest("second")));
    const auto lines = m_gate->begun();
    QCOMPARE(lines.size(), std::size_t{2});
    QCOMPARE(lines[1].second, lines[0].second); // the same process
}

/// What says the last word before it is asked for it is not waited for.
void TestGatePool::aTrialThatTheGateCancelledLeavesItWarm()
{
    GatePool pool({spec()});
    m_gate->hold();
    writeText(m_gate->path() / "cancelled", "");
    Asked first(pool, fakeRequest("first"));
    const auto ended = first.result();
    QVERIFY(!ended);
    QCOMPARE(ended.error().code, ErrorCode::Cancelled);
    fs::remove(m_gate->path() / "cancelled");
    m_gate->release();
    QVERIFY(pool.run(fakeRequest("second")));
    const auto lines = m_gate->begun();
    QCOMPARE(lines.size(), std::size_t{2});
    QCOMPARE(lines[1].second, lines[0].second);
}

void TestGatePool::aLostGateIsStartedAnew()
{
    GatePool pool({spec()});
    QVERIFY(pool.run(fakeRequest("first")));
    writeText(m_gate->path() / "die", "");
    const auto trial = pool.run(fakeRequest("second"));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    const auto lines = m_gate->begun();
    QCOMPARE(lines.size(), std::size_t{3});
    QCOMPARE(lines[2].first, std::string("second"));
    QVERIFY(lines[2].second != lines[1].second);
}

void TestGatePool::aGateThatCannotStartIsAnError()
{
    GatePool pool({{{}, m_gate->path() / "nothing"}});
    const auto trial = pool.run(fakeRequest("first"));
    QVERIFY(!trial);
    QVERIFY(!trial.error().message.empty());
    QVERIFY(!pool.run(fakeRequest("second"))); // and does not keep the gate
}

QTEST_GUILESS_MAIN(TestGatePool)
#include "tst_gatepool.moc"
