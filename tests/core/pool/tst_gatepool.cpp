// SPDX-License-Identifier: GPL-3.0-or-later
//
// The queue in front of the gates: order, place, cancel, and a gate that is lost. The gates are a script that answers what it is told.
#include "core/base/random.h"
#include "core/files/sha256.h"
#include "core/files/utctime.h"
#include "core/pool/gatepool.h"
#include "tests/patience.h"

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

using namespace klineage;
using namespace klineage::gate;
namespace fs = std::filesystem;

class TestGatePool : public QObject
{
    Q_OBJECT
private slots:
    void init();
    void inTheOrderOfAsking();
    void twoGatesWorkSideBySide();
    void aCancelledWaitLeavesTheQueue();
    void aCancelledTrialLeavesTheGateWarm();
    void aLostGateIsStartedAnew();
    void aGateThatCannotStartIsAnError();

private:
    [[nodiscard]] GateSpec fake() const
    {
        return {{"/bin/sh", KLINEAGE_SOURCE_DIR "/tests/core/pool/fakegate.sh"},
                m_folder->path().toStdString()};
    }
    [[nodiscard]] GateRequest request(const std::string &name) const
    {
        GateRequest request;
        request.workloadDirectory = KLINEAGE_SOURCE_DIR "/workloads/softmax";
        request.candidateText = "text";
        request.candidateName = name;
        return request;
    }
    [[nodiscard]] fs::path path(const char *name) const
    {
        return fs::path(m_folder->path().toStdString()) / name;
    }
    void hold() const { std::ofstream(path("hold")) << ""; }
    void release() const { fs::remove(path("hold")); }
    /// Lines of the gates' log: the name of a trial that was begun, and the process that began it.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> begun() const
    {
        std::vector<std::pair<std::string, std::string>> lines;
        std::ifstream log(path("log"));
        for (std::string name, process; log >> name >> process;)
            lines.emplace_back(name, process);
        return lines;
    }
    std::unique_ptr<QTemporaryDir> m_folder;
};

void TestGatePool::init()
{
    m_folder = std::make_unique<QTemporaryDir>();
    Trial trial;
    trial.id = randomId();
    trial.workload = "softmax";
    trial.surface = kernel::Surface::OpenCl;
    trial.candidate = files::sha256Hex("text");
    trial.time = files::nowUtc();
    trial.environment.platform = "pocl";
    trial.verdict.status = VerdictStatus::Correct;
    trial.verdict.reason = "ok";
    std::ofstream(path("trial.json")) << writeTrial(trial);
}

void TestGatePool::inTheOrderOfAsking()
{
    GatePool pool({fake()});
    hold();
    std::vector<std::jthread> threads;
    std::mutex mutex;
    std::vector<std::string> told;
    std::atomic<int> correct = 0;
    for (int i = 0; i < 5; ++i) {
        threads.emplace_back([&, i] {
            const auto trial =
                pool.run(request("T" + std::to_string(i)), {}, [&](const GateProgress &progress) {
                    const std::scoped_lock lock(mutex);
                    told.push_back(std::to_string(i) + ": " + progress.text);
                });
            correct += trial && trial->verdict.status == VerdictStatus::Correct;
        });
        // The next asks when this one has been heard.
        if (i == 0) {
            QTRY_COMPARE(begun().size(), std::size_t{1});
        } else {
            const std::string line =
                std::to_string(i) + ": waiting for a gate, place " + std::to_string(i) + " in the queue";
            QTRY_VERIFY(([&] {
                const std::scoped_lock lock(mutex);
                return std::find(told.begin(), told.end(), line) != told.end();
            })());
        }
    }
    release();
    threads.clear();
    QCOMPARE(correct.load(), 5);
    const auto lines = begun();
    QCOMPARE(lines.size(), std::size_t{5});
    for (std::size_t i = 0; i < lines.size(); ++i) {
        QCOMPARE(lines[i].first, "T" + std::to_string(i));
        QCOMPARE(lines[i].second, lines[0].second);
    }
    // Those who waited longest were told as they came nearer.
    QVERIFY(std::find(told.begin(), told.end(), "4: waiting for a gate, place 1 in the queue") != told.end());
}

void TestGatePool::twoGatesWorkSideBySide()
{
    GatePool pool({fake(), fake()});
    hold();
    std::atomic<int> correct = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&, i] { correct += pool.run(request("T" + std::to_string(i))).has_value(); });
    QTRY_COMPARE(begun().size(), std::size_t{2});
    QVERIFY(begun()[0].second != begun()[1].second);
    release();
    threads.clear();
    QCOMPARE(correct.load(), 6);
    QCOMPARE(begun().size(), std::size_t{6});
}

void TestGatePool::aCancelledWaitLeavesTheQueue()
{
    GatePool pool({fake()});
    hold();
    std::atomic<int> waiting = 0;
    std::jthread first([&] { (void)pool.run(request("first")); });
    QTRY_COMPARE(begun().size(), std::size_t{1});
    std::stop_source stop;
    std::optional<ErrorCode> code;
    std::jthread second([&] {
        const auto trial =
            pool.run(request("second"), stop.get_token(), [&](const GateProgress &) { waiting = 1; });
        if (!trial)
            code = trial.error().code;
    });
    QTRY_COMPARE(waiting.load(), 1);
    stop.request_stop();
    second.join();
    QCOMPARE(code, std::optional(ErrorCode::Cancelled));
    release();
    first.join();
    QVERIFY(pool.run(request("third")));
    const auto lines = begun();
    QCOMPARE(lines.size(), std::size_t{2});
    QCOMPARE(lines[1].first, std::string("third"));
}

void TestGatePool::aCancelledTrialLeavesTheGateWarm()
{
    GatePool pool({fake()});
    hold();
    std::stop_source stop;
    std::optional<ErrorCode> code;
    std::jthread thread([&] {
        const auto trial = pool.run(request("first"), stop.get_token());
        if (!trial)
            code = trial.error().code;
    });
    QTRY_COMPARE(begun().size(), std::size_t{1});
    std::ofstream(path("cancelled")) << "";
    stop.request_stop();
    thread.join();
    QCOMPARE(code, std::optional(ErrorCode::Cancelled));
    fs::remove(path("cancelled"));
    release();
    QVERIFY(pool.run(request("second")));
    const auto lines = begun();
    QCOMPARE(lines.size(), std::size_t{2});
    QCOMPARE(lines[1].second, lines[0].second); // the same process
}

void TestGatePool::aLostGateIsStartedAnew()
{
    GatePool pool({fake()});
    QVERIFY(pool.run(request("first")));
    std::ofstream(path("die")) << "";
    const auto trial = pool.run(request("second"));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    const auto lines = begun();
    QCOMPARE(lines.size(), std::size_t{3});
    QCOMPARE(lines[2].first, std::string("second"));
    QVERIFY(lines[2].second != lines[1].second);
}

void TestGatePool::aGateThatCannotStartIsAnError()
{
    GatePool pool({{{}, path("nothing")}});
    const auto trial = pool.run(request("first"));
    QVERIFY(!trial);
    QVERIFY(!trial.error().message.empty());
    QVERIFY(!pool.run(request("second"))); // and does not keep the gate
}

QTEST_GUILESS_MAIN(TestGatePool)
#include "tst_gatepool.moc"
