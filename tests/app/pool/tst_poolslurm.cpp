// SPDX-License-Identifier: GPL-3.0-or-later
//
// Gates that Slurm starts: a queue, nodes that are drained and lost, jobs that are cancelled or refused. Nothing is lost, and no job is left.
#include "tests/app/pool/realparts.h"
#include "tests/patience.h"

#include "core/files/atomicfile.h"
#include "tests/paths.h"

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QtTest>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::gate::test;

class TestPoolSlurm : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void cleanup();
    void theExampleOfTheReadme();
    void aQueueIsNotTheTrialsTime();
    void aNodeIsDrainedWhileATrialRuns();
    void aNodeIsLostWhileATrialRuns();
    void aCancelledJobCostsNothing();
    void whatSlurmRefusesIsSaid();
    void anAllocationOfSalloc();
    void whoDoesNotWaitLeavesNoJob();
    void anIdleGateGivesItsNodeBack();

private:
    [[nodiscard]] std::unique_ptr<GatePool> pool(
        const std::string &more = "slurm = \"srun\"\npartition = \"debug\"\n") const
    {
        auto file = parsePoolFile("[[gate]]\nname = \"batch\"\nprogram = '" + m_gate->program().string()
                                      + "'\n" + more,
                                  "pool.toml");
        if (!file)
            qFatal("%s", file.error().message.c_str());
        const BoardOptions options = file->options();
        return std::make_unique<GatePool>(std::move(file->gates), options);
    }
    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<SlurmCluster> m_cluster;
    std::unique_ptr<FakeGateFolder> m_gate;
};

void TestPoolSlurm::initTestCase()
{
    m_folder = std::make_unique<QTemporaryDir>();
    m_cluster = std::make_unique<SlurmCluster>(m_folder->path().toStdString() + "/slurm");
    if (!m_cluster->problem().empty())
        QSKIP(m_cluster->problem().c_str());
    m_gate = std::make_unique<FakeGateFolder>(m_folder->path().toStdString() + "/gate");
}

void TestPoolSlurm::cleanup()
{
    if (!m_gate)
        return;
    m_gate->release();
    std::filesystem::remove(m_gate->path() / "log");
    m_cluster->setNode("RESUME");
    (void)runProgram({"scancel", "--user=root"});
    QTRY_VERIFY(m_cluster->jobs().empty());
}

void TestPoolSlurm::theExampleOfTheReadme()
{
    const auto readme = files::readFile(klineage::test::sourcePath("/README.md"), std::size_t{1} << 20);
    QVERIFY(readme);
    const std::string before = "$ cat pool.toml\n[[gate]]\nname = \"batch\"\n";
    const std::size_t begin = readme->find(before);
    const std::size_t end = readme->find("$ klineage-cli gate run", begin);
    QVERIFY(begin != std::string::npos && end != std::string::npos);
    const std::string entry = readme->substr(begin + before.size(), end - begin - before.size());
    const auto gates = pool(entry);
    GateRequest request = fakeRequest("T0");
    request.place.platform = "pocl";
    const auto trial = gates->run(request);
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QCOMPARE(trial->environment.facts.at("gate"), std::string("batch"));
    QVERIFY2(m_cluster->jobs().find("RUNNING") != std::string::npos, "It did not run as a job.");
}

/// Two minutes under CTest, which is longer than a trial of one second may be silent; short when it is started by hand.
void TestPoolSlurm::aQueueIsNotTheTrialsTime()
{
    const int seconds = std::max(2, qEnvironmentVariableIntValue("KLINEAGE_QUEUE_SECONDS"));
    QVERIFY(runProgram({"sbatch", "--exclusive", "--output=/dev/null", "--wrap=sleep 10000"}).ok);
    QTRY_VERIFY(m_cluster->jobs().find("RUNNING") != std::string::npos);
    const auto gates = pool();
    GateRequest request = fakeRequest("T0");
    request.deadlineSeconds = 1;
    Asked asked(*gates, request);
    QTRY_VERIFY2(asked.wasTold("queued and waiting for resources"), asked.told().c_str());
    QVERIFY(asked.wasTold("batch"));
    QElapsedTimer clock;
    clock.start();
    QTest::qWait(seconds * 1000);
    QVERIFY(!asked.isOver());
    (void)runProgram({"scancel", "--user=root", "--state=RUNNING"});
    const auto trial = asked.result();
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QVERIFY(clock.elapsed() >= seconds * 1000);
    QCOMPARE(trial->environment.facts.at("gate"), std::string("batch"));
    QCOMPARE(m_gate->begun().size(), std::size_t{1});
}

void TestPoolSlurm::aNodeIsDrainedWhileATrialRuns()
{
    const auto gates = pool();
    m_gate->hold();
    Asked first(*gates, fakeRequest("T0"));
    QTRY_COMPARE(m_gate->begun().size(), std::size_t{1});
    m_cluster->setNode("DRAIN");
    m_gate->release();
    QVERIFY(first.result()); // the job that runs is left to end
    // Its gate is gone for another reason; the next one has to wait for the node, and says so.
    (void)runProgram({"scancel", "--user=root"});
    QTRY_VERIFY(m_cluster->jobs().empty());
    Asked second(*gates, fakeRequest("T1"));
    QTRY_VERIFY2(second.wasTold("down, drained or reserved") || second.isOver(), second.told().c_str());
    QVERIFY2(!second.isOver(), (second.told() + second.problem()).c_str());
    m_cluster->setNode("RESUME");
    const auto trial = second.result();
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QCOMPARE(m_gate->begun().size(), std::size_t{2});
}

void TestPoolSlurm::aNodeIsLostWhileATrialRuns()
{
    const auto gates = pool();
    m_gate->hold();
    Asked asked(*gates, fakeRequest("T0"));
    QTRY_COMPARE(m_gate->begun().size(), std::size_t{1});
    m_cluster->setNode("DOWN");
    QTRY_COMPARE(gates->state().gates[0].losses, 1);
    QVERIFY2(gates->state().gates[0].problem->message.find("Slurm lost the node") != std::string::npos,
             gates->state().gates[0].problem->message.c_str());
    m_cluster->setNode("RESUME");
    QTRY_COMPARE(m_gate->begun().size(), std::size_t{2});
    m_gate->release();
    const auto trial = asked.result();
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QCOMPARE(gates->state().gates[0].trials, 1);
}

void TestPoolSlurm::aCancelledJobCostsNothing()
{
    const auto gates = pool();
    m_gate->hold();
    Asked asked(*gates, fakeRequest("T0"));
    QTRY_COMPARE(m_gate->begun().size(), std::size_t{1});
    (void)runProgram({"scancel", "--user=root"});
    QTRY_COMPARE(m_gate->begun().size(), std::size_t{2});
    QVERIFY2(asked.wasTold("somebody cancelled the job"), asked.told().c_str());
    m_gate->release();
    QVERIFY(asked.result());
    QCOMPARE(gates->state().gates[0].losses, 1);
}

void TestPoolSlurm::whatSlurmRefusesIsSaid()
{
    const auto wrong = [this](const std::string &more) {
        const auto trial = pool("slurm = \"srun\"\n" + more)->run(fakeRequest("T0"));
        return trial ? std::string() : trial.error().message;
    };
    QVERIFY(wrong("partition = \"nowhere\"\n").find("no such partition") != std::string::npos);
    QVERIFY(wrong("constraint = \"h200\"\n").find("such a constraint") != std::string::npos);
    QVERIFY(wrong("options = [\"--gres=gpu:1\"]\n").find("generic resource") != std::string::npos);
    QVERIFY(m_gate->begun().empty());
}

void TestPoolSlurm::anAllocationOfSalloc()
{
    const auto trial = pool("slurm = \"salloc\"\n")->run(fakeRequest("T0"));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QTRY_VERIFY(m_cluster->jobs().empty());
}

void TestPoolSlurm::whoDoesNotWaitLeavesNoJob()
{
    QVERIFY(runProgram({"sbatch", "--exclusive", "--output=/dev/null", "--wrap=sleep 10000"}).ok);
    QTRY_VERIFY(m_cluster->jobs().find("RUNNING") != std::string::npos);
    {
        const auto gates = pool();
        Asked asked(*gates, fakeRequest("T0"));
        QTRY_VERIFY(m_cluster->jobs().find("PENDING") != std::string::npos);
        asked.cancel();
        const auto trial = asked.result();
        QVERIFY(!trial);
        QCOMPARE(trial.error().code, ErrorCode::Cancelled);
    }
    QTRY_VERIFY(m_cluster->jobs().find("PENDING") == std::string::npos);
}

void TestPoolSlurm::anIdleGateGivesItsNodeBack()
{
    const auto gates = pool("slurm = \"srun\"\nidle_seconds = 1\n");
    QVERIFY(gates->run(fakeRequest("T0")));
    QTRY_VERIFY(m_cluster->jobs().empty());
    QCOMPARE(gates->state().gates[0].phase, GatePhase::Cold);
    QVERIFY(gates->run(fakeRequest("T1")));
}

QTEST_GUILESS_MAIN(TestPoolSlurm)
#include "tst_poolslurm.moc"
