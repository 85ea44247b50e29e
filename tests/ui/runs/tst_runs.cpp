// SPDX-License-Identifier: GPL-3.0-or-later
// Runs in the window: listed, looked at, followed, started, paused, stopped, gone on with, answered by hand.
#include "core/llm/makeprovider.h"
#include "tests/core/run/materializefixture.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/runtrajectorypanel.h"
#include "ui/runs/answerpage.h"
#include "ui/runs/runcontroller.h"
#include "ui/runs/runlistmodel.h"
#include "ui/runs/runspanel.h"
#include "ui/runs/runstepmodel.h"
#include "ui/runs/runstepview.h"
#include "ui/runs/startdialog.h"

#include <QAbstractItemModelTester>
#include <QAction>
#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

run::Settings someRun(const std::string &id = "one")
{
    run::Settings settings;
    settings.id = id;
    settings.workload = "toy";
    settings.surface = "opencl";
    settings.platform = "pocl";
    settings.policy = "generated-only";
    settings.subject = "toy/pocl/K00";
    settings.provider = "exec";
    settings.model = "test-model";
    return settings;
}

/// Three candidates, one of them wrong, then DONE.
std::string scripted(const llm::Request &request)
{
    switch (request.messages.size() / 2) {
    case 0:
        return fencedCandidate("a ns(1500)");
    case 1:
        return fencedCandidate("is wrong");
    case 2:
        return fencedCandidate("b ns(900)");
    default:
        return "DONE";
    }
}

} // namespace

class TestRuns : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support)")));
        m_folder = std::make_unique<MemoryFolder>();
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", root(),
                 fs::copy_options::recursive);
        llm::PriceTable prices = testPriceTable();
        prices.date = "2026-01-01";
        prices.source = "this test";
        writeAll(root() / "prices.toml", llm::writePrices(prices));
        m_gate = std::make_unique<FakeGate>(judgeByCode);
        m_workspace = std::make_unique<WorkspaceModel>();
        m_workspace->openNow(QString::fromStdString(root().string()));
        QVERIFY(m_workspace->isLoaded());
        m_store = std::make_unique<RunStore>(m_workspace.get());
        m_controller = std::make_unique<RunController>(m_store.get());
        m_controller->setGate(m_gate->function());
        m_controller->setProviderMaker(
            [this](const run::Settings &, const fs::path &, const fs::path &,
                   std::shared_ptr<llm::ManualDesk>) -> Result<std::unique_ptr<llm::Provider>> {
                auto provider = std::make_unique<FunctionProvider>(scripted);
                provider->beforeAnswer = m_beforeAnswer;
                return provider;
            });
        QTRY_VERIFY(!m_store->isReading());
    }

    void cleanup()
    {
        m_controller.reset();
        m_store.reset();
        m_workspace.reset();
        m_beforeAnswer = {};
    }

    void anEmptyWorkspaceSaysWhatToDo()
    {
        Selection selection;
        RunsPanel panel(m_workspace.get(), &selection, m_store.get(), m_controller.get());
        QVERIFY(panel.isEmpty());
        RunTrajectoryPanel trajectory(m_store.get());
        QVERIFY(trajectory.traces().empty());
    }

    void aRunIsSeenThrough()
    {
        RunListModel list(m_store.get());
        RunStepModel steps(m_store.get());
        const QAbstractItemModelTester listTester(&list,
                                                  QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QAbstractItemModelTester stepTester(&steps,
                                                  QAbstractItemModelTester::FailureReportingMode::QtTest);
        Selection selection;
        RunsPanel panel(m_workspace.get(), &selection, m_store.get(), m_controller.get());
        RunStepView view(m_store.get(), m_controller.get());
        finish(someRun(), "complete");
        QVERIFY(!panel.isEmpty());
        QCOMPARE(list.rowCount(), 1);
        QVERIFY(
            list.index(0, RunListModel::StateColumn).data().toString().contains(QLatin1String("complete")));
        const RunEntryPtr run = m_store->current();
        QVERIFY(run);
        QCOMPARE(static_cast<std::size_t>(steps.rowCount()), run->record.steps.size());
        QVERIFY(steps.rowCount() >= 4);
        QVERIFY(run->spentDollars > 0.007);
        // The failed step: its prompt, its reply, its verdict and its candidate.
        const int failed = rowWith(steps, QStringLiteral("failed"));
        QVERIFY(failed >= 0);
        panel.steps()->selectRow(failed);
        QCOMPARE(m_store->step(), steps.index(failed, 0).data(RunStepModel::NumberRole).toInt());
        QTRY_VERIFY(view.isUpToDate());
        QVERIFY(view.textOf(RunStepView::Reply)->toPlainText().contains(QLatin1String("is wrong")));
        QVERIFY(view.textOf(RunStepView::Prompt)->toPlainText().contains(QLatin1String("question")));
        QVERIFY(view.textOf(RunStepView::Verdict)->toPlainText().contains(QLatin1String("It is wrong.")));
        QVERIFY(view.diff()->hunkCount() >= 1);
    }

    void theSelectionStaysWhileRunsCome()
    {
        Selection selection;
        RunsPanel panel(m_workspace.get(), &selection, m_store.get(), m_controller.get());
        finish(someRun("one"), "complete");
        m_store->setStep(2);
        // Another program's run appears in the folder.
        run::Settings other = someRun("two");
        QVERIFY(run::Journal::create(root() / "runs", other));
        QTRY_COMPARE(m_store->runs().size(), std::size_t(2));
        QCOMPARE(m_store->currentId(), QStringLiteral("one"));
        QCOMPARE(m_store->step(), 2);
        QCOMPARE(panel.runs()->currentIndex().data(RunListModel::IdRole).toString(), QStringLiteral("one"));
        QCOMPARE(panel.steps()->currentIndex().data(RunStepModel::NumberRole).toInt(), 2);
    }

    void aStoppedRunGoesOnWithoutPayingTwice()
    {
        std::atomic<int> questions = 0;
        m_beforeAnswer = [&] {
            if (++questions == 2)
                QMetaObject::invokeMethod(m_controller.get(), &RunController::pause,
                                          Qt::BlockingQueuedConnection);
        };
        finish(someRun(), "stopped");
        QVERIFY(questions < 4);
        QTRY_VERIFY(m_store->current() && !m_store->current()->isRunning());
        const double spent = m_store->current()->spentDollars;
        QVERIFY(spent > 0);
        const int asked = questions;
        QSignalSpy ended(m_controller.get(), &RunController::ended);
        QCOMPARE(m_controller->resume(QStringLiteral("one")), QString());
        QTRY_COMPARE_WITH_TIMEOUT(ended.count(), 1, patienceMs);
        QCOMPARE(ended[0][1].toString(), QStringLiteral("complete"));
        QCOMPARE(questions.load(), 4);
        QVERIFY(asked < 4);
        QTRY_VERIFY(m_store->current()->isFinished());
        QVERIFY(std::abs(m_store->current()->spentDollars - 4 * 0.002) < 1e-9);
        QVERIFY(!m_controller->resume(QStringLiteral("one")).isEmpty());
    }

    void stopEndsAWaitingQuestionAtOnce()
    {
        QSignalSpy ended(m_controller.get(), &RunController::ended);
        QSignalSpy asked(m_controller.get(), &RunController::questionChanged);
        m_beforeAnswer = [this] {
            QMetaObject::invokeMethod(
                m_controller.get(), [this] { m_controller->setByHand(true); }, Qt::BlockingQueuedConnection);
        };
        QCOMPARE(m_controller->start(someRun()), QString());
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->question().has_value(), patienceMs);
        m_controller->stop();
        QTRY_COMPARE_WITH_TIMEOUT(ended.count(), 1, patienceMs);
        QCOMPARE(ended[0][1].toString(), QStringLiteral("stopped"));
        QVERIFY(!m_controller->isRunning());
        QTRY_COMPARE(m_store->current() ? m_store->current()->record.state : std::string(),
                     std::string("stopped"));
    }

    void aPersonTakesOver()
    {
        RunStepView view(m_store.get(), m_controller.get());
        QSignalSpy ended(m_controller.get(), &RunController::ended);
        std::atomic<int> questions = 0;
        m_beforeAnswer = [&] {
            if (++questions == 1)
                QMetaObject::invokeMethod(
                    m_controller.get(), [this] { m_controller->setByHand(true); },
                    Qt::BlockingQueuedConnection);
        };
        QCOMPARE(m_controller->start(someRun()), QString());
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->question().has_value(), patienceMs);
        QTRY_VERIFY(view.hasTab(RunStepView::Answer));
        QCOMPARE(view.tab(), RunStepView::Answer);
        // A blank reply is not handed in.
        QSignalSpy said(view.answerPage(), &AnswerPage::message);
        view.answerPage()->handIn();
        QVERIFY(m_controller->question().has_value());
        view.answerPage()->field()->setPlainText(QString::fromStdString(fencedCandidate("mine ns(500)")));
        m_controller->setByHand(false);
        view.answerPage()->handIn();
        QCOMPARE(said.count(), 2);
        QTRY_COMPARE_WITH_TIMEOUT(ended.count(), 1, patienceMs);
        QCOMPARE(ended[0][1].toString(), QStringLiteral("complete"));
        const auto transcript = llm::readTranscript(root() / "runs/one/transcript.jsonl");
        QVERIFY(transcript);
        QCOMPARE(transcript->at(0).provider, std::string("exec"));
        QCOMPARE(transcript->at(1).provider, std::string("manual"));
        QCOMPARE(transcript->at(1).dollars, 0.0);
        QVERIFY(transcript->at(2).dollars > 0);
        QVERIFY(!view.hasTab(RunStepView::Answer));
    }

    void theTrajectoryShowsWhatWasRecorded()
    {
        finish(someRun("one"), "complete");
        finish(someRun("two"), "complete");
        m_store->setCurrent(QStringLiteral("two"));
        RunTrajectoryPanel panel(m_store.get());
        panel.resize(500, 300);
        QCOMPARE(panel.traces().size(), std::size_t(2));
        QCOMPARE(panel.traces()[0].run, QStringLiteral("two"));
        QCOMPARE(panel.traces()[0].reference, QStringLiteral("openblas"));
        QVERIFY(panel.plot()->yAxis->label().contains(QLatin1String("openblas")));
        const auto &points = panel.traces()[0].points;
        const auto &record = m_store->current()->record.steps;
        QCOMPARE(points.size(), record.size());
        for (std::size_t i = 0; i < points.size(); ++i) {
            QCOMPARE(points[i].best, record[i].best);
            QCOMPARE(points[i].dollars, record[i].totalDollars);
        }
        QVERIFY(std::any_of(points.begin(), points.end(),
                            [](const auto &point) { return point.kind == RunTracePoint::Kind::Failed; }));
    }

    void theDialogSaysWhatIsMissing()
    {
        StartDialog dialog(m_workspace->workspace(), nullptr);
        QVERIFY(!dialog.startButton()->isEnabled()); // nothing to begin with
        dialog.suggest({QStringLiteral("toy/pocl/K00"), QStringLiteral("toy/pocl/K02"), {}, {}});
        QVERIFY2(dialog.startButton()->isEnabled(), qPrintable(dialog.estimateLabel()->text()));
        QCOMPARE(dialog.settings().workload, std::string("toy"));
        QCOMPARE(dialog.settings().subject, std::string("toy/pocl/K00"));
        run::StartRequest request = dialog.request();
        request.provider = "exec";
        dialog.setRequest(request);
        QVERIFY(!dialog.startButton()->isEnabled());
        QVERIFY(dialog.estimateLabel()->text().contains(QLatin1String("needs a command")));
        request.author["command"] = "cat";
        dialog.setRequest(request);
        QVERIFY(dialog.startButton()->isEnabled());
        request.provider = "anthropic";
        request.model = "test-model";
        request.policy = "generated-only";
        dialog.setRequest(request);
        if (llm::hasNetworkProviders())
            QVERIFY2(dialog.estimateLabel()->text().contains(QLatin1Char('$')),
                     qPrintable(dialog.estimateLabel()->text()));
        request.model = "nobody-knows";
        dialog.setRequest(request);
        QVERIFY(!dialog.startButton()->isEnabled() || !llm::hasNetworkProviders());
    }

    void theDialogAsksWhichGates()
    {
        StartDialog dialog(m_workspace->workspace(), nullptr);
        dialog.suggest({QStringLiteral("toy/pocl/K00"), QStringLiteral("toy/pocl/K02"), {}, {}});
        const auto field = [&dialog](const QString &label) -> QWidget * {
            for (int row = 0; row < dialog.fields()->rowCount(); ++row) {
                const auto *text = qobject_cast<QLabel *>(
                    dialog.fields()->itemAt(row, QFormLayout::LabelRole)
                        ? dialog.fields()->itemAt(row, QFormLayout::LabelRole)->widget()
                        : nullptr);
                if (text && text->text().remove(QLatin1Char('&')) == label)
                    return dialog.fields()->itemAt(row, QFormLayout::FieldRole)->widget();
            }
            return nullptr;
        };
        auto *gates = qobject_cast<QComboBox *>(field(QStringLiteral("Gates")));
        auto *launcher = qobject_cast<QLineEdit *>(field(QStringLiteral("Launcher")));
        QVERIFY(gates && launcher);
        QVERIFY(!dialog.fields()->isRowVisible(gates)); // nobody is there to be asked
        dialog.offerGates({}, {});
        QCOMPARE(gates->count(), 2);
        QCOMPARE(dialog.runPlace().gates, RunPlace::Here);
        QVERIFY(!dialog.fields()->isRowVisible(launcher));
        dialog.offerGates(QStringLiteral("/lab/pool.toml"), {});
        QCOMPARE(gates->count(), 3);
        QCOMPARE(dialog.runPlace().gates, RunPlace::Pool);
        gates->setCurrentIndex(2);
        QVERIFY(dialog.fields()->isRowVisible(launcher));
        QVERIFY(!dialog.startButton()->isEnabled());
        QVERIFY(dialog.estimateLabel()->text().contains(QLatin1String("ssh HOST")));
        launcher->setText(QStringLiteral("srun \"--gres=gpu:1"));
        QVERIFY(dialog.estimateLabel()->text().contains(QLatin1String("quote")));
        launcher->setText(QStringLiteral(" srun --gres=gpu:1 "));
        QVERIFY2(dialog.startButton()->isEnabled(), qPrintable(dialog.estimateLabel()->text()));
        QCOMPARE(dialog.runPlace().gates, RunPlace::Launched);
        QCOMPARE(dialog.runPlace().launcher, QStringLiteral("srun --gres=gpu:1"));
    }

    void theDialogHasTheFieldsOfTheKind_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<QStringList>("labels");
        const auto row = [](run::Kind kind, const QStringList &labels) {
            QTest::newRow(run::toString(kind)) << static_cast<int>(kind) << labels;
        };
        row(run::Kind::Materialize, {"Begin with", "Policy", "Author", "Cap", "Questions", "Seed"});
        row(run::Kind::Deoptimize,
            {"Kernel (K*)", "Name", "Author", "Cap", "Steps", "Rejections", "Repairs", "Within"});
        row(run::Kind::Lift, {"Lineages", "Author", "Cap", "Groups"});
        row(run::Kind::Admit, {"Card", "Target", "Author", "Cap", "Attempts"});
    }
    void theDialogHasTheFieldsOfTheKind()
    {
        QFETCH(int, kind);
        QFETCH(QStringList, labels);
        StartDialog dialog(m_workspace->workspace(), nullptr);
        dialog.suggest({QStringLiteral("toy/pocl/K00"), QStringLiteral("toy/pocl/K02"),
                        QStringLiteral("toy/pocl"), QStringLiteral("stage-rows")});
        dialog.show();
        dialog.setKind(static_cast<run::Kind>(kind));
        QStringList shown;
        QFormLayout *form = dialog.fields();
        for (int i = 0; i < form->rowCount(); ++i) {
            const QLayoutItem *item = form->itemAt(i, QFormLayout::LabelRole);
            const auto *label = item ? qobject_cast<QLabel *>(item->widget()) : nullptr;
            if (label && label->isVisible() && !label->text().isEmpty())
                shown << QString(label->text()).remove(QLatin1Char('&'));
        }
        QCOMPARE(shown, labels);
    }

    void theDialogSaysHowManyCardsAreShown()
    {
        StartDialog dialog(m_workspace->workspace(), nullptr);
        dialog.suggest({QStringLiteral("toy/pocl/K00"), QStringLiteral("toy/pocl/K02"), {}, {}});
        QVERIFY(dialog.settings().options.count("hypotheses") == 0);
        const QString without = dialog.estimateLabel()->text();
        run::StartRequest request = dialog.request();
        request.options["hypotheses"] = "yes";
        dialog.setRequest(request);
        QCOMPARE(dialog.settings().options.at("hypotheses"), std::string("yes"));
        const QString with = dialog.estimateLabel()->text();
        QVERIFY2(without.contains(QLatin1String("card")) && with.contains(QLatin1String("card"))
                     && with != without,
                 qPrintable(without + u'|' + with));
        // A policy without cards has neither the switch nor the sentence.
        request = dialog.request();
        request.policy = "generated-only";
        dialog.setRequest(request);
        QVERIFY(!dialog.estimateLabel()->text().contains(QLatin1String("card")));
    }

    void theDialogAsksForWhatTheCommandLineDoes()
    {
        StartDialog dialog(m_workspace->workspace(), nullptr);
        dialog.suggest({QStringLiteral("toy/pocl/K00"), QStringLiteral("toy/pocl/K02"),
                        QStringLiteral("toy/pocl"), QStringLiteral("stage-rows")});
        dialog.setKind(run::Kind::Deoptimize);
        QVERIFY(!dialog.startButton()->isEnabled()); // toy/pocl is there
        run::StartRequest request = dialog.request();
        QCOMPARE(request.subject, std::string("toy/pocl/K02"));
        QCOMPARE(request.options.at("rejections"), std::string("5"));
        QCOMPARE(request.options.at("repairs"), std::string("2"));
        QCOMPARE(request.options.at("within_percent"), std::string("3"));
        request.options = {
            {"name", "again"}, {"rejections", "7"}, {"repairs", "0"}, {"within_percent", "10"}};
        request.maxSteps = 4;
        dialog.setRequest(request);
        QVERIFY2(dialog.startButton()->isEnabled(), qPrintable(dialog.estimateLabel()->text()));
        request.options["bounds"] = "both"; // as every new walk
        QVERIFY(dialog.settings().options == request.options);
        QCOMPARE(dialog.settings().maxSteps, 4);
        // What is of another kind does not come along.
        dialog.setKind(run::Kind::Lift);
        QCOMPARE(dialog.settings().subject, std::string("toy/pocl"));
        QVERIFY((dialog.settings().options == std::map<std::string, std::string>{{"card_format", "2"}}));
        dialog.setKind(run::Kind::Admit);
        request = dialog.request();
        QCOMPARE(request.subject, std::string("stage-rows"));
        QCOMPARE(request.options.at("attempts"), std::string("3"));
        QCOMPARE(request.maxSteps, 0);
        QVERIFY(!dialog.startButton()->isEnabled()); // every lineage had a part in the card
        request.options["target"] = "toy/pocl/K00";
        request.options["attempts"] = "1";
        dialog.setRequest(request);
        QVERIFY2(dialog.startButton()->isEnabled(), qPrintable(dialog.estimateLabel()->text()));
        QVERIFY(dialog.estimateLabel()->text().contains(QLatin1String("cannot admit the card")));
        QCOMPARE(dialog.settings().options.at("attempts"), std::string("1"));
        dialog.setKind(run::Kind::Materialize);
        QCOMPARE(dialog.settings().subject, std::string("toy/pocl/K00"));
    }

private:
    [[nodiscard]] fs::path root() const { return m_folder->path() / "workspace"; }

    void finish(const run::Settings &settings, const char *code)
    {
        QSignalSpy ended(m_controller.get(), &RunController::ended);
        QSignalSpy failed(m_controller.get(), &RunController::failed);
        QCOMPARE(m_controller->start(settings), QString());
        QVERIFY(m_controller->isRunning());
        QTRY_VERIFY_WITH_TIMEOUT(ended.count() + failed.count() == 1, patienceMs);
        QVERIFY2(failed.isEmpty(), failed.isEmpty() ? "" : qPrintable(failed[0][1].toString()));
        QCOMPARE(ended[0][1].toString(), QLatin1String(code));
        const QString id = QString::fromStdString(settings.id);
        QTRY_VERIFY(m_store->run(id) && !m_store->run(id)->isRunning() && !m_store->isReading());
    }

    static int rowWith(const QAbstractItemModel &model, const QString &outcome)
    {
        for (int row = 0; row < model.rowCount(); ++row) {
            if (model.index(row, RunStepModel::OutcomeColumn).data().toString().contains(outcome))
                return row;
        }
        return -1;
    }

    std::unique_ptr<MemoryFolder> m_folder;
    std::unique_ptr<FakeGate> m_gate;
    std::unique_ptr<WorkspaceModel> m_workspace;
    std::unique_ptr<RunStore> m_store;
    std::unique_ptr<RunController> m_controller;
    std::function<void()> m_beforeAnswer;
};

QTEST_MAIN(TestRuns)
#include "tst_runs.moc"

#include <algorithm>
