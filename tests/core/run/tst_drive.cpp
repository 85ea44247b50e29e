// SPDX-License-Identifier: GPL-3.0-or-later
// Runs from outside: driven to their end, checked against their record, estimated, given a provider.
#include "core/run/drive/drive.h"
#include "core/run/drive/estimate.h"
#include "core/run/drive/replaycheck.h"
#include "core/run/drive/runprovider.h"
#include "tests/core/run/materializefixture.h"
#include "tests/paths.h"

#include <QTest>

#include <memory>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

Settings someSettings(const std::string &policy = "generated-only")
{
    Settings settings;
    settings.id = "one";
    settings.workload = "toy";
    settings.surface = "opencl";
    settings.platform = "pocl";
    settings.policy = policy;
    settings.subject = "toy/pocl/K00";
    settings.provider = "exec";
    settings.model = "test-model";
    return settings;
}

/// Four candidates, one of them wrong, then DONE.
std::string answer(const llm::Request &request)
{
    switch (request.messages.size() / 2) {
    case 0:
        return fencedCandidate("a ns(1500)");
    case 1:
        return fencedCandidate("is wrong");
    case 2:
        return fencedCandidate("b ns(900)");
    case 3:
        return fencedCandidate("c ns(1100)");
    default:
        return "DONE";
    }
}

void replaceIn(const fs::path &file, const std::string &what, const std::string &with)
{
    std::string text = readAll(file);
    const std::size_t at = text.find(what);
    QVERIFY2(at != std::string::npos, what.c_str());
    writeAll(file, text.replace(at, what.size(), with));
}

} // namespace

class TestDrive : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_folder = std::make_unique<MemoryFolder>();
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", workspace(),
                 fs::copy_options::recursive);
    }

    void recordedRunsReplay_data()
    {
        QTest::addColumn<double>("cap");
        QTest::addColumn<int>("steps");
        QTest::addColumn<int>("stopAfter");
        QTest::addColumn<QString>("ending");
        QTest::newRow("complete") << 10.0 << 0 << 0 << "complete";
        QTest::newRow("step limit") << 10.0 << 3 << 0 << "step_limit";
        QTest::newRow("budget") << 0.18 << 0 << 0 << "budget";
        QTest::newRow("stopped") << 10.0 << 0 << 3 << "stopped";
    }

    void recordedRunsReplay()
    {
        QFETCH(double, cap);
        QFETCH(int, steps);
        QFETCH(int, stopAfter);
        QFETCH(QString, ending);
        Settings settings = someSettings();
        settings.capDollars = cap;
        settings.maxSteps = steps;
        const Result<Ending> ended = drive(settings, stopAfter);
        QVERIFY2(ended, ended ? "" : ended.error().message.c_str());
        QCOMPARE(QString::fromStdString(ended->code), ending);
        const std::string before = readAll(directory() / "steps.jsonl");
        QVERIFY(before.size() > 200);
        const Result<ReplayCheck> check = checkReplay(workspace(), directory());
        QVERIFY2(check, check ? "" : check.error().message.c_str());
        QVERIFY2(check->ok(), check->difference.c_str());
        QCOMPARE(check->steps, check->recorded);
        QVERIFY(check->steps >= 3);
        QCOMPARE(readAll(directory() / "steps.jsonl"), before); // it works on a copy
    }

    void changedRecordsAreFound_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("with");
        QTest::addColumn<QString>("expected");
        QTest::newRow("a step's speedup") << "steps.jsonl"
                                          << "\"speedup\":0.6666"
                                          << "\"speedup\":0.7666"
                                          << "Step 2 differs";
        QTest::newRow("a trial's verdict") << "trials.jsonl"
                                           << "\"status\":\"wrong\""
                                           << "\"status\":\"crash\""
                                           << "Step 3 differs";
        QTest::newRow("the last reply") << "transcript.jsonl"
                                        << "\"text\":\"DONE\""
                                        << "\"text\":\"DONE: enough\""
                                        << "differs";
        QTest::newRow("a prompt") << "workload.toml"
                                  << "title"
                                  << "description = \"x\"\ntitle"
                                  << "another prompt";
        QTest::newRow("an ending") << "ending.toml"
                                   << "complete"
                                   << "step_limit"
                                   << "ended with";
    }

    void changedRecordsAreFound()
    {
        QFETCH(QString, file);
        QFETCH(QString, what);
        QFETCH(QString, with);
        QFETCH(QString, expected);
        QVERIFY(drive(someSettings()));
        replaceIn(directory() / file.toStdString(), what.toStdString(), with.toStdString());
        const Result<ReplayCheck> check = checkReplay(workspace(), directory());
        QVERIFY2(check, check ? "" : check.error().message.c_str());
        QVERIFY(!check->ok());
        QVERIFY2(QString::fromStdString(check->difference).contains(expected), check->difference.c_str());
    }

    /// The next request holds it, so the transcript itself does not fit together any more.
    void aChangedReplyIsRefused()
    {
        QVERIFY(drive(someSettings()));
        replaceIn(directory() / "transcript.jsonl", "b ns(900)", "b ns(901)");
        const Result<ReplayCheck> check = checkReplay(workspace(), directory());
        QVERIFY(!check);
        QCOMPARE(check.error().code, ErrorCode::InvalidInput);
        QVERIFY2(QString::fromStdString(check.error().message).contains("was the transcript edited?"),
                 check.error().message.c_str());
    }

    void errorsAreWrittenDownAndCanBeGoneOnFrom()
    {
        QVERIFY(ensureRun(workspace() / "runs", someSettings()));
        FunctionProvider provider(answer);
        const GateFunction broken = [](const gate::GateRequest &, std::stop_token,
                                       const gate::ProgressCallback &) -> Result<gate::Trial> {
            return klineage::fail(ErrorCode::Unavailable, "There is no gate.");
        };
        const llm::PriceTable prices = testPriceTable();
        const Result<Ending> ended =
            driveRun(directory(), {workspace(), provider, prices, broken, {}, {}, 0});
        QVERIFY(!ended);
        const RunRecord record = *readRun(directory());
        QCOMPARE(record.ending.text(), std::string("error: There is no gate."));
        QCOMPARE(record.state, std::string("stopped"));
        QVERIFY(drive(someSettings()));
        QCOMPARE(readRun(directory())->state, std::string("finished"));
    }

    void otherSettingsAreAConflict()
    {
        QVERIFY(ensureRun(workspace() / "runs", someSettings()));
        QVERIFY(ensureRun(workspace() / "runs", someSettings()));
        const Status other = ensureRun(workspace() / "runs", someSettings("greedy"));
        QVERIFY(!other && other.error().code == ErrorCode::Conflict);
    }

    void estimates()
    {
        const llm::PriceTable prices = testPriceTable();
        QVERIFY(!*estimateCost(someSettings(), false, prices, 1000, 0));
        const auto estimate = *estimateCost(someSettings(), true, prices, 3500, 35000);
        QVERIFY(estimate);
        // About 12,700 tokens in and 500 out, at a dollar and ten dollars a million.
        QVERIFY(estimate->firstDollars > 0.015 && estimate->firstDollars < 0.022);
        QVERIFY(estimate->laterDollars > 0.05 && estimate->laterDollars < 0.10);
        QVERIFY(estimate->dollars <= 10 && estimate->dollars > 9);
        Settings few = someSettings();
        few.maxSteps = 3;
        QCOMPARE((*estimateCost(few, true, prices, 3500, 0))->questions, 3);
        few.capDollars = 0;
        QCOMPARE((*estimateCost(few, true, prices, 3500, 0))->questions, 0);
        few.model = "unheard-of";
        const auto unknown = estimateCost(few, true, prices, 3500, 0);
        QVERIFY(!unknown);
        QVERIFY(unknown.error().message.find("unheard-of") != std::string::npos);
    }

    void commandsRunInTheWorkspace()
    {
        Settings settings = someSettings();
        settings.author = {{"command", "cat workloads/toy/workload.toml >/dev/null && echo fine \"$0\""}};
        Result<std::unique_ptr<llm::Provider>> provider = makeRunProvider(settings, workspace(), directory());
        QVERIFY2(provider, provider ? "" : provider.error().message.c_str());
        llm::Request request;
        request.system = "s";
        request.messages = {{llm::Role::User, "question", false}};
        const auto reply = (*provider)->ask(request, {}, {});
        QVERIFY2(reply, reply ? "" : reply.error().error.message.c_str());
        QVERIFY2(reply->text.starts_with("fine"), reply->text.c_str());
        settings.author["comand"] = "x";
        provider = makeRunProvider(settings, workspace(), directory());
        QVERIFY(!provider && provider.error().message.find("did you mean 'command'") != std::string::npos);
        settings.author = {};
        settings.provider = "manual";
        fs::create_directories(directory());
        QVERIFY(makeRunProvider(settings, workspace(), directory()));
        QVERIFY(fs::is_directory(directory() / "manual"));
    }

private:
    [[nodiscard]] fs::path workspace() const { return m_folder->path() / "w"; }
    [[nodiscard]] fs::path directory() const { return workspace() / "runs/one"; }

    Result<Ending> drive(const Settings &settings, int stopAfter = 0)
    {
        if (Status there = ensureRun(workspace() / "runs", settings); !there)
            return tl::unexpected(there.error());
        FunctionProvider provider(answer);
        FakeGate fake(judgeByCode);
        const llm::PriceTable prices = testPriceTable();
        return driveRun(directory(), {workspace(), provider, prices, fake.function(), {}, {}, stopAfter});
    }

    std::unique_ptr<MemoryFolder> m_folder;
};

QTEST_GUILESS_MAIN(TestDrive)
#include "tst_drive.moc"
