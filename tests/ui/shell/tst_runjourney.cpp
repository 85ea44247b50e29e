// SPDX-License-Identifier: GPL-3.0-or-later
// A run in the real window, with real keys: started with a program as its author, paused, gone on with, answered by hand, stopped, and brought to
// its end. A run of another process is seen to grow, and what is selected stays. The cards of a step, and runs beside each other.
#include "core/run/summary.h"
#include "tests/core/run/materializefixture.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/view/diffview.h"
#include "ui/experiments/compare/comparepanel.h"
#include "ui/plots/runtrajectorypanel.h"
#include "ui/plots/trajectorytabs.h"
#include "ui/runs/answerpage.h"
#include "ui/runs/runcontroller.h"
#include "ui/runs/runlistmodel.h"
#include "ui/runs/runspanel.h"
#include "ui/runs/runstepmodel.h"
#include "ui/runs/runstepview.h"
#include "ui/runs/startdialog.h"
#include "ui/runs/stepcardspage.h"
#include "ui/shell/centre.h"

#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProcess>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>

#include <chrono>
#include <thread>

using namespace klineage;
using namespace klineage::ui;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

constexpr const char *growArgument = "--grow";

/// Answers from reply1, reply2, … of the workspace; from the second question on only once go2, go3, … is there.
const char *const authorScript = "cat > /dev/null\n"
                                 "n=$(($(cat count 2>/dev/null || echo 0) + 1))\n"
                                 "echo $n > count\n"
                                 "while [ $n -ge 2 ] && [ ! -e go$n ]; do sleep 0.02; done\n"
                                 "cat reply$n\n";

void addPrices(const fs::path &workspace)
{
    llm::PriceTable prices = testPriceTable();
    prices.date = "2026-01-01";
    prices.source = "this test";
    writeAll(workspace / "prices.toml", llm::writePrices(prices));
}

/// What the other process does: a run whose author answers as often as it is told to. 0: the run came to its end.
int grow(const fs::path &workspace)
{
    run::Settings settings;
    settings.id = "elsewhere";
    settings.workload = "toy";
    settings.surface = "opencl";
    settings.platform = "pocl";
    settings.policy = "generated-only";
    settings.subject = "toy/pocl/K00";
    settings.provider = "exec";
    settings.model = "test-model";
    if (!run::Journal::create(workspace / "runs", settings))
        return 1;
    FunctionProvider author([](const llm::Request &request) {
        const std::size_t asked = request.messages.size() / 2;
        return asked < 3 ? fencedCandidate("x ns(" + std::to_string(1500 - 400 * asked) + ")")
                         : std::string("DONE");
    });
    author.beforeAnswer = [&] {
        const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds(patienceMs);
        while (!fs::exists(workspace / ("grow" + std::to_string(author.calls)))) {
            if (std::chrono::steady_clock::now() > patience)
                std::_Exit(3);
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    };
    FakeGate gate(judgeByCode);
    const auto ending = goOn(workspace, workspace / "runs/elsewhere", author, gate.function());
    return ending && ending->code == "complete" ? 0 : 2;
}

/// The real window on a copy of the small workspace of the tests.
struct SmallWindow {
    SmallWindow()
    {
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", root(),
                 fs::copy_options::recursive);
        addPrices(root());
        writeAll(root() / "author.sh", authorScript);
        writeAll(root() / "reply1", fencedCandidate("a ns(1500)"));
        writeAll(root() / "reply2", fencedCandidate("is wrong"));
        writeAll(root() / "reply3", fencedCandidate("b ns(900)"));
        writeAll(root() / "reply4", "DONE");
        writeAll(root() / "reply5", "DONE");
        window.resize(1600, 1000);
        window.runner()->setGate(gate.function());
        window.setWanted(QStringLiteral("toy/pocl/K00"), {});
        window.show();
        window.openWorkspace(QString::fromStdString(root().string()));
        ready = takeKeys(window)
                && QTest::qWaitFor([this] { return window.workspace()->isLoaded() && window.isSettled(); },
                                   patienceMs);
    }

    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        QWidget *focus = QApplication::focusWidget();
        QTest::keyClick(focus ? focus : &window, key, modifiers);
    }
    /// After a dialog: keys go to the window again.
    [[nodiscard]] bool isActive()
    {
        window.activateWindow();
        return takeKeys(window);
    }
    [[nodiscard]] fs::path root() const { return folder.path() / "workspace"; }
    void go(int question) const { writeAll(root() / ("go" + std::to_string(question)), "go"); }
    /// So many questions were asked of the program.
    [[nodiscard]] bool asked(int questions) const
    {
        return QTest::qWaitFor([&] { return readAll(root() / "count") == std::to_string(questions) + "\n"; },
                               patienceMs);
    }
    [[nodiscard]] RunEntryPtr run() const { return window.runs()->current(); }
    [[nodiscard]] RunStepView *stepView() const
    {
        return qobject_cast<RunStepView *>(window.panel(QStringLiteral("run")));
    }
    [[nodiscard]] RunsPanel *runsPanel() const
    {
        return qobject_cast<RunsPanel *>(window.panel(QStringLiteral("runs")));
    }
    [[nodiscard]] RunTrajectoryPanel *trajectory() const
    {
        return qobject_cast<TrajectoryTabs *>(window.panel(QStringLiteral("trajectory")))->runs();
    }

    MemoryFolder folder;
    FakeGate gate{judgeByCode};
    MainWindow window;
    bool ready = false;
};

} // namespace

class TestRunJourney : public UiTest
{
    Q_OBJECT

private slots:
    void startPauseAnswerResumeStop()
    {
        SmallWindow small;
        QVERIFY(small.ready);
        RunController *runner = small.window.runner();
        QSignalSpy ended(runner, &RunController::ended);
        QSignalSpy failed(runner, &RunController::failed);

        // Started: what is selected is what it begins with; the rest is typed.
        QString problem = QStringLiteral("no dialog");
        withNextModal<StartDialog>(this,
                                   [&problem](StartDialog &dialog) { problem = fillStartDialog(&dialog); });
        small.press(Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        QVERIFY(small.isActive());
        QVERIFY(runner->isRunning());
        QCOMPARE(small.window.centre()->page(), QStringLiteral("run"));
        QVERIFY(small.asked(2)); // the first one was answered, gated, and the second one waits
        QTRY_COMPARE(small.runsPanel()->steps()->model()->rowCount(), 2);
        QTRY_COMPARE(traceOf(small)->points.size(), std::size_t{2});
        QVERIFY(small.runsPanel()->progressText()->text().contains(small.window.runs()->currentId()));

        // Paused: the step at hand is made.
        small.press(Qt::Key_U, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(runner->progress().pausing);
        small.go(2);
        QTRY_COMPARE(ended.count() + failed.count(), 1);
        QCOMPARE(ended.value(0).value(1).toString(), QStringLiteral("stopped"));
        QTRY_COMPARE(small.runsPanel()->steps()->model()->rowCount(), 3);
        QTRY_COMPARE(small.run()->record.state, std::string("stopped"));
        QCOMPARE(small.run()->record.steps.back().outcome, std::string("failed"));
        const double spent = small.run()->spentDollars;

        // Gone on with, and taken over: the question at hand is still the program's.
        small.press(Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(runner->isRunning());
        QVERIFY(small.asked(3));
        small.press(Qt::Key_H, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(runner->progress().byHand);
        QVERIFY(!runner->question());
        small.go(3);
        QTRY_VERIFY(runner->question().has_value());
        QTRY_VERIFY(small.stepView()->hasTab(RunStepView::Answer));
        QTRY_COMPARE(small.run()->record.steps.size(), std::size_t{4});

        // Answered by hand: a key goes to the field from wherever one is; a candidate is pasted and handed in.
        small.window.panel(QStringLiteral("lineage"))->setFocus();
        small.press(Qt::Key_J, Qt::ControlModifier | Qt::ShiftModifier);
        QPlainTextEdit *field = small.stepView()->answerPage()->field();
        QCOMPARE(QApplication::focusWidget(), static_cast<QWidget *>(field));
        QApplication::clipboard()->setText(QString::fromStdString(fencedCandidate("mine ns(500)")));
        small.press(Qt::Key_V, Qt::ControlModifier);
        QVERIFY(field->toPlainText().contains(QLatin1String("ns(500)")));
        small.press(Qt::Key_Return, Qt::ControlModifier);
        QTRY_VERIFY(small.run()->record.steps.size() == 5 && runner->question().has_value());
        const auto transcript = llm::readTranscript(small.run()->record.directory / "transcript.jsonl");
        QVERIFY(transcript);
        QCOMPARE(transcript->back().provider, std::string("manual"));
        QCOMPARE(transcript->at(transcript->size() - 2).provider, std::string("exec"));
        QCOMPARE(small.run()->summary.best, 2.0);   // 1000 ns of the reference over 500
        QCOMPARE(small.run()->spentDollars, spent); // neither the program nor the person costs anything

        // Stopped while it waits for the person: at once, and what was recorded stays.
        const std::size_t recorded = small.run()->record.steps.size();
        small.press(Qt::Key_Escape, Qt::ShiftModifier);
        QTRY_COMPARE(ended.count() + failed.count(), 2);
        QCOMPARE(ended.value(1).value(1).toString(), QStringLiteral("stopped"));
        QVERIFY(!runner->isRunning() && !small.stepView()->hasTab(RunStepView::Answer));
        QTRY_COMPARE(small.run()->record.state, std::string("stopped"));
        QCOMPARE(small.run()->record.steps.size(), recorded);

        // And to its end, by the program again: nothing is asked twice.
        small.go(4);
        small.go(5);
        small.press(Qt::Key_G, Qt::ControlModifier | Qt::ShiftModifier);
        QTRY_COMPARE(ended.count() + failed.count(), 3);
        QVERIFY2(failed.isEmpty(), failed.isEmpty() ? "" : qPrintable(failed[0][1].toString()));
        QCOMPARE(ended.value(2).value(1).toString(), QStringLiteral("complete"));
        QTRY_VERIFY(small.run()->isFinished());
        QCOMPARE(small.run()->summary.best, 2.0);
        QVERIFY(small.asked(4));
    }

    void aRunOfAnotherProcessIsSeenToGrow()
    {
        SmallWindow small;
        QVERIFY(small.ready);
        QProcess other;
        other.start(QCoreApplication::applicationFilePath(),
                    {QLatin1String(growArgument), QString::fromStdString(small.root().string())});
        QVERIFY(other.waitForStarted());
        QTableView *steps = small.runsPanel()->steps();
        QTRY_COMPARE(small.runsPanel()->runs()->model()->rowCount(), 1);
        openRuns(small);
        small.press(Qt::Key_Down);
        QTRY_VERIFY(small.run() && small.run()->isRunning());
        QTRY_COMPARE(steps->model()->rowCount(), 1);  // the root
        QVERIFY(!small.window.runner()->isRunning()); // it is none of this window's

        // Who looks at the last step sees the next one.
        QVERIFY(grown(small, 1));
        QCOMPARE(small.window.runs()->step(), 2);
        QCOMPARE(steps->currentIndex().data(RunStepModel::NumberRole).toInt(), 2);
        // Who looks at another one stays there.
        steps->setFocus();
        small.press(Qt::Key_Up);
        QCOMPARE(small.window.runs()->step(), 1);
        QVERIFY(grown(small, 2));
        QCOMPARE(small.window.runs()->step(), 1);
        QCOMPARE(steps->currentIndex().data(RunStepModel::NumberRole).toInt(), 1);
        QCOMPARE(QApplication::focusWidget(), static_cast<QWidget *>(steps));
        QVERIFY(grown(small, 3));
        QCOMPARE(steps->currentIndex().data(RunStepModel::NumberRole).toInt(), 1);
        const auto &points = traceOf(small)->points;
        for (std::size_t i = 0; i < points.size(); ++i)
            QCOMPARE(points[i].best, small.run()->record.steps[i].best);

        writeAll(small.root() / "grow4", "go");
        QTRY_COMPARE(other.state(), QProcess::NotRunning);
        QCOMPARE(other.exitCode(), 0);
        QTRY_VERIFY(small.run()->isFinished());
        QCOMPARE(small.runsPanel()->runs()->model()->rowCount(), 1);
        QCOMPARE(small.window.runs()->step(), 1);
    }

    /// Of a run that was recorded with the library that ships.
    void theCardsOfAStepSayWhyTheyCame()
    {
        RealWindow real(QStringLiteral("gemm/sm90/K05"));
        QVERIFY(real.ready);
        const QString id = copyRun(real, "heldout-addmm-4096-sm90-f9bc63-klineage-full-s1");
        real.window->setWanted(QStringLiteral("run:") + id, {});
        real.window->openWorkspace(real.folder.path());
        QVERIFY(real.settle());
        auto *view = qobject_cast<RunStepView *>(real.window->panel(QStringLiteral("run")));
        auto *steps = qobject_cast<RunsPanel *>(real.window->panel(QStringLiteral("runs")))->steps();
        QTRY_VERIFY(steps->model()->rowCount() > 2);
        steps->setFocus();
        int loaded = -1;
        for (int row = 0; row < steps->model()->rowCount(); ++row) {
            if (steps->model()->index(row, RunStepModel::ActionColumn).data().toString()
                == QLatin1String("complete"))
                loaded = row;
        }
        QVERIFY(loaded > 0);
        steps->selectRow(loaded);
        QTRY_VERIFY(view->isUpToDate());
        // By keys: from the candidate to the prompt to the cards.
        view->setTab(RunStepView::Candidate);
        view->diff()->setFocus();
        real.press(Qt::Key_PageDown, Qt::ControlModifier);
        QCOMPARE(view->tab(), RunStepView::Prompt);
        real.press(Qt::Key_PageDown, Qt::ControlModifier);
        QCOMPARE(view->tab(), RunStepView::Cards);
        StepCardsPage *page = view->cardsPage();
        QCOMPARE(QApplication::focusWidget(), static_cast<QWidget *>(page->table()));
        const StepCardsModel *model = page->model();
        QVERIFY(model->rowCount() > 0);
        const std::string prompt = view->textOf(RunStepView::Prompt)->toPlainText().toStdString();
        int shown = 0;
        for (int row = 0; row < model->rowCount(); ++row) {
            const StepCard &card = model->card(row);
            QVERIFY2(!card.why.isEmpty(), qPrintable(card.name));
            const bool isSaid = card.shown == StepCard::Shown::Text || card.shown == StepCard::Shown::Line
                                || card.shown == StepCard::Shown::Named;
            if (isSaid)
                QVERIFY2(prompt.find(card.name.toStdString()) != std::string::npos, qPrintable(card.name));
            shown += card.shown == StepCard::Shown::Text ? 1 : 0;
        }
        QVERIFY(shown > 0); // the cards that are taken in come with their texts
        const run::StepRecord *step = real.window->runs()->current()->step(real.window->runs()->step());
        QVERIFY(!step->cards.empty());
        QVERIFY(model->card(page->table()->currentIndex().row()).isAbout);
        QVERIFY(page->detail()->toPlainText().contains(
            model->card(page->table()->currentIndex().row()).why.front()));
        // Return shows the card of the library.
        int linked = page->table()->currentIndex().row();
        while (linked < model->rowCount() && !model->isInLibrary(linked))
            ++linked;
        QVERIFY(linked < model->rowCount());
        page->table()->selectRow(linked);
        const QString name = model->card(linked).name;
        real.press(Qt::Key_Return);
        QCOMPARE(real.card(), name);
        QVERIFY(real.hasFocus("card"));
    }

    /// Of the runs that stand beside each other one is opened, and looked at with its steps.
    void runsStandBesideEachOther()
    {
        RealWindow real(QStringLiteral("gemm/sm90/K05"));
        QVERIFY(real.ready);
        const fs::path root = real.folder.path().toStdString();
        fs::create_directories(root / "experiments");
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/experiments/cards-against-none",
                 root / "experiments/cards", fs::copy_options::recursive);
        // The page is shown by its command, as any command is.
        real.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        real.type(QStringLiteral("show compare runs"));
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("compare"));
        auto *panel = qobject_cast<ComparePanel *>(real.window->panel(QStringLiteral("compare")));
        QTRY_COMPARE(panel->model()->shownRuns(), 12);
        QVERIFY(real.hasFocus("compare"));
        real.press(Qt::Key_Slash);
        real.type(QStringLiteral("policy=klineage"));
        real.press(Qt::Key_Return);
        QCOMPARE(panel->model()->shownRuns(), 6);
        panel->table()->setCurrentIndex(panel->model()->index(0, 0));
        const QString id = panel->model()->runAt(0)->run->id();
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("run"));
        QTRY_VERIFY(real.window->runs()->current());
        QCOMPARE(real.window->runs()->currentId(), id);
        // Back: the filter is still there.
        real.window->centre()->showPage(QStringLiteral("compare"));
        QCOMPARE(panel->filterField()->text(), QStringLiteral("policy=klineage"));
        panel->setView({});
    }

private:
    /// With keys; what is wrong in a sentence.
    static QString fillStartDialog(StartDialog *dialog)
    {
        const auto choose = [dialog](const QString &text) {
            for (QComboBox *box : dialog->findChildren<QComboBox *>()) {
                if (box->findText(text, Qt::MatchStartsWith) < 0 || !box->isVisible())
                    continue;
                box->setFocus();
                QTest::keyClicks(box, text);
            }
        };
        choose(QStringLiteral("generated"));
        choose(QStringLiteral("exec"));
        QLineEdit *command = nullptr;
        for (QLineEdit *line : dialog->findChildren<QLineEdit *>()) {
            if (line->isVisible() && line->placeholderText().contains(QLatin1String("stdin")))
                command = line;
        }
        if (!command) {
            dialog->reject();
            return QStringLiteral("no field for the command");
        }
        command->setFocus();
        QTest::keyClicks(command, QStringLiteral("sh author.sh"));
        if (!dialog->startButton()->isEnabled()) {
            const QString why = dialog->estimateLabel()->text();
            dialog->reject();
            return why;
        }
        const run::StartRequest request = dialog->request();
        if (request.subject != "toy/pocl/K00" || request.policy != "generated-only"
            || request.provider != "exec") {
            dialog->reject();
            return QStringLiteral("from %1 by %2, %3")
                .arg(QString::fromStdString(request.subject), QString::fromStdString(request.policy),
                     QString::fromStdString(request.provider));
        }
        QTest::keyClick(command, Qt::Key_Return);
        return {};
    }

    static const RunTrace *traceOf(const SmallWindow &small)
    {
        static const RunTrace none;
        const auto &traces = small.trajectory()->traces();
        return traces.empty() ? &none : &traces.front();
    }

    /// The runs and their trajectory are in view.
    static void openRuns(SmallWindow &small)
    {
        small.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("show runs"));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
    }

    /// The other process makes a step more, and all that shows the run has it.
    static bool grown(const SmallWindow &small, int answer)
    {
        writeAll(small.root() / ("grow" + std::to_string(answer)), "go");
        const auto steps = static_cast<std::size_t>(answer) + 1;
        return QTest::qWaitFor(
            [&] {
                return small.run()->record.steps.size() == steps
                       && small.runsPanel()->steps()->model()->rowCount() == static_cast<int>(steps)
                       && traceOf(small)->points.size() == steps;
            },
            patienceMs);
    }

    static QString copyRun(const RealWindow &real, const char *name)
    {
        const fs::path root = real.folder.path().toStdString();
        fs::create_directories(root / "runs");
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/experiments/cards-on-hopper/runs"
                     / name,
                 root / "runs" / name, fs::copy_options::recursive);
        return QLatin1String(name);
    }
};

int main(int argc, char *argv[])
{
    if (argc == 3 && std::string_view(argv[1]) == growArgument)
        return grow(argv[2]);
    return runUiTest(argc, argv, []() -> QObject * { return new TestRunJourney; });
}

#include "tst_runjourney.moc"
