// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/sha256.h"
#include "core/run/experiment/preregistration.h"
#include "core/run/experiment/results.h"
#include "core/run/experiment/runcells.h"
#include "tests/core/run/materializefixture.h"
#include "tests/paths.h"

#include <QTest>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <cmath>
#include <memory>
#include <set>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

const char *const text = R"(title = "Cards against none"
roots = ["toy/pocl/K00", "toy/pocl/K01"]
policies = ["greedy", "generated-only"]
seeds = [1, 2]
budget_dollars = 1.0
max_steps = 4
provider = "exec"
model = "test-model"

[author]
command = "sh author.sh"

[options]
patience = "3"
)";

/// Greedy asks in chats of one turn, so its author only knows what stands in them. The second root is never improved.
std::string answer(const llm::Request &request)
{
    const bool second = request.system.find("toy/pocl/K01") != std::string::npos;
    const bool attemptTwo = request.system.find("attempt 2") != std::string::npos;
    if (second)
        return fencedCandidate("is wrong");
    if (request.messages.back().text.find("a new best") != std::string::npos)
        return "DONE";
    return fencedCandidate(attemptTwo ? "x ns(250)" : "x ns(1000)");
}

} // namespace

class TestExperiment : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_folder = std::make_unique<MemoryFolder>();
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", workspace(),
                 fs::copy_options::recursive);
        fs::create_directories(directory());
        writeAll(directory() / "experiment.toml", text);
    }

    void fileIsKept()
    {
        const Result<Experiment> experiment = parseExperiment(text, "experiment.toml");
        QVERIFY2(experiment, experiment ? "" : experiment.error().message.c_str());
        QCOMPARE(writeExperiment(*experiment), std::string(text));
    }

    void badFilesAreRefused_data()
    {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("with");
        QTest::addColumn<QString>("expected");
        QTest::newRow("root") << "toy/pocl/K01"
                              << "../pocl/K01"
                              << "no root";
        QTest::newRow("root twice") << "toy/pocl/K01"
                                    << "toy/pocl/K00"
                                    << "named twice";
        QTest::newRow("policy") << "greedy"
                                << "gredy"
                                << "did you mean 'greedy'";
        QTest::newRow("seed") << "[1, 2]"
                              << "[1, -2]"
                              << "negative";
        QTest::newRow("seed twice") << "[1, 2]"
                                    << "[2, 2]"
                                    << "named twice";
        QTest::newRow("budget") << "1.0"
                                << "-1.0"
                                << "between 0";
        QTest::newRow("key") << "max_steps"
                             << "max_step"
                             << "did you mean 'max_steps'";
        QTest::newRow("no provider") << "provider = \"exec\"\n"
                                     << ""
                                     << "provider";
        QTest::newRow("no roots") << "[\"toy/pocl/K00\", \"toy/pocl/K01\"]"
                                  << "[]"
                                  << "empty";
    }

    void badFilesAreRefused()
    {
        QFETCH(QString, what);
        QFETCH(QString, with);
        QFETCH(QString, expected);
        const QString changed = QString(text).replace(what, with);
        QVERIFY(changed != text);
        const Result<Experiment> experiment = parseExperiment(changed.toStdString(), "experiment.toml");
        QVERIFY(!experiment);
        QVERIFY(experiment.error().message.starts_with("experiment.toml:"));
        QVERIFY2(QString::fromStdString(experiment.error().message).contains(expected),
                 experiment.error().message.c_str());
    }

    void cellsAreInterleavedAndNamedApart()
    {
        Experiment experiment = *readExperiment(directory());
        experiment.roots = {"a-very-long-workload-name-indeed/platform/K00",
                            "a-very-long-workload-name-indeed/platform/K01", "x_y/pocl/K00", "x-y/pocl/K00"};
        const std::vector<Cell> cells = cellsOf(experiment);
        QCOMPARE(cells.size(), std::size_t{16});
        std::set<std::string> ids;
        for (const Cell &cell : cells) {
            ids.insert(cell.runId);
            QVERIFY2(isRunId(cell.runId), cell.runId.c_str());
        }
        QCOMPARE(ids.size(), cells.size());
        QCOMPARE(cells[0].policy, std::string("greedy"));
        QCOMPARE(cells[1].policy, std::string("generated-only"));
        QCOMPARE(cells[1].root, cells[0].root);
        QCOMPARE(cells[7].seed, std::uint64_t{1});
    }

    void aRootMayBeAFileOfItsWorkload()
    {
        Experiment experiment = *readExperiment(directory());
        fs::copy_file(workspace() / "workloads/toy/lineages/pocl/K00.cl",
                      workspace() / "workloads/toy/root.cl");
        experiment.roots = {"toy/pocl/root.cl"};
        const Result<Experiment> read = parseExperiment(writeExperiment(experiment), "experiment.toml");
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        const Result<Settings> settings = settingsOf(experiment, cellsOf(experiment)[0], workspace());
        QVERIFY2(settings, settings ? "" : settings.error().message.c_str());
        QCOMPARE(settings->subject, std::string("workloads/toy/root.cl"));
        QCOMPARE(settings->platform, std::string("pocl"));
        QCOMPARE(settings->surface, std::string("opencl"));
        fs::remove(workspace() / "workloads/toy/root.cl");
        QVERIFY(!settingsOf(experiment, cellsOf(experiment)[0], workspace()));
        experiment.roots = {"toy/pocl/root.txt"};
        QVERIFY(!parseExperiment(writeExperiment(experiment), "experiment.toml"));
    }

    void runsStopsAndGoesOn()
    {
        const Experiment experiment = *readExperiment(directory());
        std::stop_source stop;
        FunctionProvider provider(answer);
        FakeGate fake(judgeByCode);
        int ended = 0;
        // Stopped in the third run, at its second question.
        provider.beforeAnswer = [&] {
            if (ended == 2)
                stop.request_stop();
        };
        Result<ExperimentOutcome> outcome = run(experiment, provider, fake, stop.get_token(), ended);
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        QVERIFY(outcome->problems.empty());
        QCOMPARE(outcome->finished, 2);
        QCOMPARE(outcome->stopped, 1);
        QCOMPARE(readResults(experiment).policies.back().unfinished, 3);

        provider.beforeAnswer = {};
        outcome = run(experiment, provider, fake, {}, ended);
        QVERIFY(outcome->problems.empty());
        QCOMPARE(outcome->finished, 8);
        const ExperimentResults results = readResults(experiment);
        const int asked = provider.calls;
        int questions = 0;
        for (const CellResult &cell : results.cells)
            questions += cell.summary.questions;
        QCOMPARE(questions, asked); // nothing was asked twice

        // Again: everything is over.
        QCOMPARE(run(experiment, provider, fake, {}, ended)->finished, 8);
        QCOMPARE(provider.calls, asked);

        // Successes on the first root, 1 and 4 times the reference; the second root is never improved.
        QCOMPARE(results.policies.size(), std::size_t{6});
        for (const PolicyResult &policy : results.policies) {
            QCOMPARE(policy.unfinished, 0);
            if (policy.root == "toy/pocl/K01") {
                QCOMPARE(policy.successes, 0);
                QCOMPARE(policy.failures, 2);
                QCOMPARE(policy.geometricMean, 0.0);
            } else {
                QCOMPARE(policy.successes, 2);
                QVERIFY(std::abs(policy.geometricMean - 2) < 1e-12);
            }
        }
        const QString csv = QString::fromStdString(resultsCsv(results));
        QCOMPARE(csv.count('\n'), 9);
        QVERIFY(csv.contains("toy/pocl/K00,greedy,2,finished,complete,openblas,0.5,4,4,yes,1,0,0,2,0.004\n"));
        const QString trajectories = QString::fromStdString(trajectoriesCsv(results));
        QVERIFY(trajectories.contains("toy/pocl/K00,greedy,1,2,0.002,1,1,suggest,valid\n"));
    }

    /// A new plan asks as a new run does, in what it does not say; one that has begun goes on as it began.
    void newPlansHaveTheDefaultsOfNewRuns()
    {
        Experiment experiment = *readExperiment(directory());
        FunctionProvider provider(answer);
        FakeGate fake(judgeByCode);
        int ended = 0;
        experiment.options["prompt_bytes"] = "20000";
        QVERIFY(run(experiment, provider, fake, {}, ended));
        for (const Cell &cell : cellsOf(experiment)) {
            const Result<RunRecord> record = readRun(directory() / "runs" / cell.runId);
            QVERIFY(record);
            policy::Options expected = policy::newOptions(cell.policy);
            expected["patience"] = "3";
            expected["prompt_bytes"] = "20000";
            QCOMPARE(record->settings.options, expected);
        }

        init();
        experiment = *readExperiment(directory());
        writeAll(directory() / "preregistered.toml",
                 "sha256 = \"" + files::sha256Hex(text) + "\"\ntime = \"before\"\n");
        QVERIFY(run(experiment, provider, fake, {}, ended));
        for (const Cell &cell : cellsOf(experiment)) {
            const Result<RunRecord> record = readRun(directory() / "runs" / cell.runId);
            QVERIFY(record);
            QCOMPARE(record->settings.options, experiment.options);
        }
    }

    void severalAtATimeAskTheGateTogether()
    {
        const Experiment experiment = *readExperiment(directory());
        FunctionProvider provider(answer);
        FakeGate fake(judgeByCode);
        int ended = 0;
        m_askTogether = 2;
        m_gateTogether = 2;
        const Result<ExperimentOutcome> outcome = run(experiment, provider, fake, {}, ended, 3);
        QVERIFY(outcome);
        QVERIFY(outcome->problems.empty());
        QCOMPARE(outcome->finished, 8);
        QCOMPARE(ended, 8);
        QVERIFY(m_askTogether <= 0);  // two runs waited for their authors at one time
        QVERIFY(m_gateTogether <= 0); // and two trials were asked for: who queues them is the pool's business
        const std::string several = resultsCsv(readResults(experiment));
        init();
        const Experiment again = *readExperiment(directory());
        QVERIFY(run(again, provider, fake, {}, ended));
        QCOMPARE(resultsCsv(readResults(again)), several);
    }

    void missingLineageIsSaidBeforeAnythingRuns()
    {
        Experiment experiment = *readExperiment(directory());
        experiment.roots.push_back("toy/sm90/K00");
        FunctionProvider provider(answer);
        FakeGate fake(judgeByCode);
        int ended = 0;
        QVERIFY(!run(experiment, provider, fake, {}, ended));
        QCOMPARE(provider.calls + fake.calls, 0);
    }

private:
    [[nodiscard]] fs::path workspace() const { return m_folder->path() / "w"; }
    [[nodiscard]] fs::path directory() const { return workspace() / "experiments/cards"; }

    /// Until so many have asked, none is answered.
    static void awaitOthers(std::atomic<int> &missing)
    {
        --missing;
        for (int i = 0; i < 60'000 && missing > 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

    Result<ExperimentOutcome> run(const Experiment &experiment, FunctionProvider &provider, FakeGate &fake,
                                  std::stop_token stop, int &ended, int jobs = 1)
    {
        /// The test's provider lives longer than one run.
        class Borrowed : public llm::Provider
        {
        public:
            Borrowed(llm::Provider &other, TestExperiment &test)
                : m_other(other)
                , m_test(test)
            {}
            [[nodiscard]] std::string name() const override { return m_other.name(); }
            [[nodiscard]] bool isPaid() const override { return m_other.isPaid(); }
            [[nodiscard]] tl::expected<llm::Reply, llm::ProviderFailure> ask(
                const llm::Request &request, std::stop_token token, const llm::TextCallback &onText) override
            {
                awaitOthers(m_test.m_askTogether);
                const std::scoped_lock lock(m_test.m_asking);
                return m_other.ask(request, token, onText);
            }

        private:
            llm::Provider &m_other;
            TestExperiment &m_test;
        };
        const llm::PriceTable prices = testPriceTable();
        const GateFunction watched = [this, gate = fake.function()](const gate::GateRequest &request,
                                                                    std::stop_token token,
                                                                    const gate::ProgressCallback &progress) {
            awaitOthers(m_gateTogether);
            const std::scoped_lock lock(m_gating);
            return gate(request, token, progress);
        };
        ExperimentDriver driver{workspace(), prices, watched, {}, stop, {}, {}, jobs};
        driver.makeProvider = [&](const Settings &settings,
                                  const fs::path &) -> Result<std::unique_ptr<llm::Provider>> {
            if (settings.author.count("command") == 0)
                return klineage::fail(ErrorCode::InvalidInput, "The author was lost.");
            return std::make_unique<Borrowed>(provider, *this);
        };
        driver.ended = [&ended](const Cell &, const Result<Ending> &) { ++ended; };
        return runExperiment(experiment, driver);
    }

    std::unique_ptr<MemoryFolder> m_folder;
    std::mutex m_asking;
    std::atomic<int> m_askTogether = 0;
    std::mutex m_gating;
    std::atomic<int> m_gateTogether = 0;
};

QTEST_GUILESS_MAIN(TestExperiment)
#include "tst_experiment.moc"
