// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"
#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/files/utctime.h"
#include "tests/patience.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/gatecontroller.h"
#include "ui/runs/jobmodel.h"
#include "ui/runs/runconsole.h"

#include <QAbstractItemModelTester>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <thread>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr auto lineageKey = "sgemm/pocl";
constexpr auto candidateText = "/*klineage\nsurface = \"opencl\"\n*/\n";

gate::Trial verdict(gate::VerdictStatus status)
{
    gate::Trial trial;
    trial.id = randomId();
    trial.workload = "sgemm";
    trial.surface = kernel::Surface::OpenCl;
    trial.candidate = files::sha256Hex(candidateText);
    trial.time = files::nowUtc();
    trial.environment.platform = "pocl";
    trial.verdict.status = status;
    trial.verdict.message = "A verdict.";
    trial.verdict.evidence = {{"element", "c[3, 17]"}};
    trial.verdict.hint = "Look at the index.";
    return trial;
}

gate::GateRequest request()
{
    gate::GateRequest request;
    request.candidateName = "K01.cl";
    request.candidateText = candidateText;
    return request;
}

} // namespace

class TestGateController : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support)")));
        m_folder = std::make_unique<QTemporaryDir>();
        Workspace value;
        lineage::Lineage lineage;
        lineage.workload = "sgemm";
        lineage.platform = "pocl";
        lineage.directory = m_folder->path().toStdString();
        value.lineages = {lineage};
        lineage.title = "sgemm";
        lineage.states = {{"K00", "K00.cl", "naive", {}}};
        lineage.termination = "complete";
        const auto written =
            files::writeFileAtomic(lineage.directory / "lineage.toml", lineage::writeLineage(lineage));
        QVERIFY2(written, written ? "" : written.error().message.c_str());
        m_workspace = std::make_unique<WorkspaceModel>();
        m_workspace->setWorkspace(value);
        m_controller = std::make_unique<GateController>(m_workspace.get());
    }

    void aVerdictIsRecordedAsABranch()
    {
        m_controller->setRunner(
            [](const auto &, std::stop_token, const gate::ProgressCallback &) -> Result<gate::Trial> {
                return verdict(gate::VerdictStatus::Wrong);
            });
        QSignalSpy finished(m_controller.get(), &GateController::finished);
        QVERIFY(m_controller->start(request(), lineageKey, QStringLiteral("K00")));
        QTRY_COMPARE(finished.count(), 1);
        QVERIFY2(finished[0][2].toString().startsWith(QLatin1String("trial:")),
                 qPrintable(finished[0][3].toString()));
        QFile trials(m_folder->filePath(QStringLiteral("trials.jsonl")));
        QVERIFY(trials.open(QIODevice::ReadOnly));
        const auto recorded = gate::parseTrial(trials.readAll().trimmed().toStdString(), "trials.jsonl:1");
        QVERIFY2(recorded, recorded ? "" : recorded.error().message.c_str());
        QVERIFY(QFile::exists(m_folder->filePath(QString::fromStdString(recorded->file))));
        QVERIFY(!m_controller->isRunning());
    }

    void whatIsNoEvidenceIsNotRecorded_data()
    {
        QTest::addColumn<int>("status");
        QTest::newRow("no device") << static_cast<int>(gate::VerdictStatus::Unavailable);
        QTest::newRow("a typo") << static_cast<int>(gate::VerdictStatus::CompileError);
    }

    void whatIsNoEvidenceIsNotRecorded()
    {
        QFETCH(int, status);
        m_controller->setRunner(
            [status](const auto &, std::stop_token, const gate::ProgressCallback &) -> Result<gate::Trial> {
                return verdict(static_cast<gate::VerdictStatus>(status));
            });
        QSignalSpy finished(m_controller.get(), &GateController::finished);
        m_controller->start(request(), lineageKey, QStringLiteral("K00"));
        QTRY_COMPARE(finished.count(), 1);
        QVERIFY(finished[0][2].toString().isEmpty());
        QVERIFY(!finished[0][3].toString().isEmpty());
        QVERIFY(!QFile::exists(m_folder->filePath(QStringLiteral("trials.jsonl"))));
    }

    void stopDropsTheResult()
    {
        std::atomic<bool> begun = false;
        m_controller->setRunner([&begun](const auto &, std::stop_token stop,
                                         const gate::ProgressCallback &) -> Result<gate::Trial> {
            begun = true;
            while (!stop.stop_requested())
                std::this_thread::yield();
            return verdict(gate::VerdictStatus::Correct);
        });
        QSignalSpy stopped(m_controller.get(), &GateController::stopped);
        QSignalSpy finished(m_controller.get(), &GateController::finished);
        m_controller->start(request(), lineageKey, QStringLiteral("K00"));
        QTRY_VERIFY(begun);
        QVERIFY(!m_controller->start(request(), lineageKey, QStringLiteral("K00")));
        m_controller->stop();
        QTRY_COMPARE(stopped.count(), 1);
        QCOMPARE(finished.count(), 0);
        QVERIFY(!QFile::exists(m_folder->filePath(QStringLiteral("trials.jsonl"))));
    }

    void destroyingWhileRunningStopsTheThread()
    {
        m_controller->setRunner(
            [](const auto &, std::stop_token stop, const gate::ProgressCallback &) -> Result<gate::Trial> {
                while (!stop.stop_requested())
                    std::this_thread::yield();
                return fail(ErrorCode::Cancelled, "Stopped.");
            });
        m_controller->start(request(), lineageKey, QStringLiteral("K00"));
        m_controller.reset();
        QVERIFY(!m_controller);
    }

    void errorsOfTheGateAreSentences()
    {
        m_controller->setRunner(
            [](const auto &, std::stop_token, const gate::ProgressCallback &) -> Result<gate::Trial> {
                return fail(ErrorCode::NotFound, "Cannot find klineage-gate.", "Build it.");
            });
        QSignalSpy failed(m_controller.get(), &GateController::failed);
        m_controller->start(request(), lineageKey, QStringLiteral("K00"));
        QTRY_COMPARE(failed.count(), 1);
        QCOMPARE(failed[0][1].toString(), QStringLiteral("Cannot find klineage-gate.\nBuild it."));
    }

    void theConsoleShowsJobsAndTheirText()
    {
        m_controller->setRunner(
            [](const auto &, std::stop_token, const gate::ProgressCallback &progress) -> Result<gate::Trial> {
                progress({gate::Stage::Correctness, 0.5, "case odd, seed 2 of 3"});
                return verdict(gate::VerdictStatus::Wrong);
            });
        Selection selection;
        RunConsole console(m_controller.get(), &selection);
        QAbstractItemModelTester tester(console.model(),
                                        QAbstractItemModelTester::FailureReportingMode::QtTest);
        QSignalSpy finished(m_controller.get(), &GateController::finished);
        for (int i = 1; i <= 3; ++i) {
            m_controller->start(request(), lineageKey, QStringLiteral("K00"));
            QTRY_COMPARE(finished.count(), i);
        }
        QCOMPARE(console.model()->rowCount(), 3);
        const QString detail = console.model()->index(0, 0).data(JobModel::DetailRole).toString();
        QVERIFY(detail.contains(QStringLiteral("c[3, 17]")));
        QVERIFY(detail.contains(QStringLiteral("Look at the index.")));
        auto *table = console.findChild<QTableView *>();
        emit table->activated(console.model()->index(0, 0));
        QVERIFY(selection.row().startsWith(QLatin1String("trial:")));
    }

    void theStopButtonStops()
    {
        m_controller->setRunner(
            [](const auto &, std::stop_token stop, const gate::ProgressCallback &) -> Result<gate::Trial> {
                while (!stop.stop_requested())
                    std::this_thread::yield();
                return fail(ErrorCode::Cancelled, "Stopped.");
            });
        Selection selection;
        RunConsole console(m_controller.get(), &selection);
        console.show();
        m_controller->start(request(), lineageKey, QStringLiteral("K00"));
        QSignalSpy stopped(m_controller.get(), &GateController::stopped);
        QTest::mouseClick(console.findChild<QPushButton *>(), Qt::LeftButton);
        QTRY_COMPARE(stopped.count(), 1);
        QCOMPARE(console.model()->index(0, JobModel::VerdictColumn).data().toString(),
                 QStringLiteral("stopped"));
    }

private:
    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<WorkspaceModel> m_workspace;
    std::unique_ptr<GateController> m_controller;
};

QTEST_MAIN(TestGateController)
#include "tst_gatecontroller.moc"
