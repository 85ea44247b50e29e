// SPDX-License-Identifier: GPL-3.0-or-later
// What the editor says of a draft beside its verdict: why that is undecided,
// that it does not compile though the device is taken, and that it is of
// another lineage than the one that is shown; with the keys of the real window.
#include "core/files/sha256.h"
#include "core/gate/session/deviceturn.h"
#include "core/pool/gateclient.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/editor/verdictstrip.h"
#include "ui/models/devicename.h"
#include "ui/models/lineagemodel.h"
#include "ui/models/undecidedtext.h"
#include "ui/runs/gatecontroller.h"
#include "ui/runs/jobmodel.h"
#include "ui/runs/runconsole.h"
#include "ui/shell/centre.h"
#include "ui/style/format.h"

#include <QLabel>
#include <QPlainTextEdit>
#include <QSemaphore>
#include <QSignalSpy>
#include <QStatusBar>
#include <QTabBar>
#include <QToolButton>

#include <memory>
#include <mutex>

using namespace klineage;
using namespace klineage::ui;

namespace {

/// A correct trial on a processor that was busy, whose interval leaves open
/// what it is.
gate::Trial undecidedTrial(const gate::Interval &speedup = {1.012, 0.996, 1.028})
{
    gate::Trial trial;
    trial.id = "00000000000000aa";
    trial.time = "2026-01-31T12:34:56Z";
    trial.workload = "silu";
    trial.surface = *kernel::surfaceFromString("opencl");
    trial.environment.platform = "pocl";
    trial.environment.device = "a processor";
    trial.environment.facts = {{"load_1min", "5.2"}, {"cpu_threads", "2"}};
    trial.latencyNs = {1000, 990, 1010};
    trial.verdict.status = gate::VerdictStatus::Correct;
    trial.verdict.stage = gate::Stage::Profile;
    trial.verdict.message = "Correct on 5 cases.";
    trial.verdict.evidence = {
        {"rounds", "64"}, {"least_change", "0.3 %"}, {"aa_spread", "0.1 %"}, {"stopped_by", "time_limit"}};
    gate::Comparison parent;
    parent.against = "parent";
    parent.speedup = speedup;
    parent.change = gate::Change::Undecided;
    trial.verdict.comparisons = {parent};
    return trial;
}

QString why(const gate::Trial &trial)
{
    return undecidedText(trial, trial.verdict.comparisons.front());
}

} // namespace

class TestDraftJourney : public UiTest
{
    Q_OBJECT

private slots:
    void initTestCase() { qRegisterMetaType<gate::Trial>("klineage::gate::Trial"); }

    void whatIsOpenAndWhatItTakes()
    {
        const QString thin(QChar(0x202f));
        gate::Trial trial = undecidedTrial();
        // 0.9 % of the 1.6 % below the median are above 1.003.
        QVERIFY2(why(trial).startsWith(QStringLiteral("Undecided: ±1.58") + thin
                                       + QStringLiteral("% is too wide to tell whether 1.01× is a gain; "
                                                        "that takes less than ±0.89")
                                       + thin + QLatin1Char('%')),
                 qPrintable(why(trial)));
        QVERIFY(why(trial).contains(QLatin1String("The machine was busy: a load of 5.2 on 2 threads")));
        QVERIFY(why(trial).contains(QLatin1String("ran out after 64 rounds")));
        QVERIFY(why(undecidedTrial({0.98, 0.95, 1.01}))
                    .contains(QStringLiteral("whether %1 is a loss").arg(formatSpeedup(0.98))));
        QVERIFY(why(undecidedTrial({1.0, 0.99, 1.01}))
                    .contains(QStringLiteral("rule out that %1 is a gain").arg(formatSpeedup(1.0))));
        trial = undecidedTrial({1.006, 1.004, 1.008});
        trial.verdict.evidence[1].value = "1 %";
        trial.verdict.evidence[2].value = "0.5 %";
        trial.environment.facts.clear();
        QVERIFY2(why(trial).contains(QLatin1String("within the noise")), qPrintable(why(trial)));
        QVERIFY2(why(trial).contains(QLatin1String("copies of the candidate")), qPrintable(why(trial)));
        QVERIFY(!why(trial).contains(QLatin1String("busy")));
        gate::Trial together = trial;
        together.verdict.evidence.push_back(
            {"less_precise", "results are off by 1e-4 before they are rounded, the parent's by 1e-7"});
        QVERIFY2(why(together).startsWith(
                     QStringLiteral("Undecided: the gain may come from fewer bits: results are off by 1e-4")),
                 qPrintable(why(together)));
        gate::Trial replayed = trial;
        replayed.verdict.evidence.push_back(
            {"only_replayed", "launched one by one a run takes 30 \u00b5s, the parent's 29 \u00b5s"});
        QVERIFY2(
            why(replayed).startsWith(QStringLiteral("Undecided: the gain is there in replayed graphs alone")),
            qPrintable(why(replayed)));
        gate::Trial reset = trial;
        reset.verdict.evidence.push_back({"clock", "runs take 1 ms one by one, and 2 ms"});
        QVERIFY2(why(reset).startsWith(QStringLiteral("Undecided: the clock may have been changed")),
                 qPrintable(why(reset)));
        trial.verdict.evidence[0].value = "3";
        QVERIFY(why(trial).contains(QLatin1String("3 rounds were timed")));
        trial.verdict.comparisons.front().change = gate::Change::NoGain;
        QVERIFY(why(trial).isEmpty());
    }

    void anUndecidedVerdictSaysWhyAndIsGatedAgain()
    {
        const RealWindow real(QStringLiteral("silu/pocl/K00"));
        QVERIFY(real.ready);
        auto *gate = real.window->findChild<GateController *>();
        std::mutex mutex;
        std::vector<gate::GateRequest> asked;
        gate->setRunner([&](const gate::GateRequest &request, std::stop_token, gate::ProgressCallback) {
            const std::scoped_lock lock(mutex);
            asked.push_back(request);
            return Result<gate::Trial>(undecidedTrial());
        });
        QSignalSpy finished(gate, &GateController::finished);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        auto *text = real.find<QPlainTextEdit>("editor");
        text->setFocus();
        real.press(Qt::Key_Return, Qt::ControlModifier);
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, patienceMs);
        auto *strip = real.find<VerdictStrip>("editor");
        auto *line = strip->findChild<QLabel *>(QStringLiteral("verdictLine"));
        auto *again = strip->findChild<QToolButton *>(QStringLiteral("verdictAgain"));
        QVERIFY2(line->accessibleName().startsWith(QStringLiteral("Undecided: ±1.58")),
                 qPrintable(line->accessibleName()));
        QVERIFY(line->accessibleName().contains(QLatin1String("The machine was busy")));
        QVERIFY2(line->text().contains(QLatin1String("The machine was busy"))
                     && line->text().endsWith(QLatin1String("after 64 rounds.")),
                 qPrintable(line->text())); // nothing of why is cut
        QVERIFY(again->isVisible());
        QVERIFY2(again->toolTip().contains(QLatin1String("Ctrl+Return")), qPrintable(again->toolTip()));

        again->setFocus();
        real.press(Qt::Key_Space);
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 2, patienceMs);
        QCOMPARE(asked.size(), std::size_t{2});
        QCOMPARE(asked[1].candidateText, asked[0].candidateText);
        QVERIFY(asked[1].profileSeconds > asked[0].profileSeconds);

        // Of another text nothing is left open yet.
        QVERIFY(again->isVisible());
        text->setFocus();
        real.press(Qt::Key_End, Qt::ControlModifier);
        real.type(QStringLiteral(" "));
        QVERIFY(!again->isVisible());
        real.press(Qt::Key_Return, Qt::ControlModifier);
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 3, patienceMs);
        QCOMPARE(asked[2].profileSeconds, asked[0].profileSeconds);
    }

    /// Names of processors have their beginnings in common, and a cell has no
    /// room for more.
    void anotherProcessorIsToldByWhatDiffers()
    {
        const QString mine = QStringLiteral("pthread-skylake-avx512-Intel(R) Xeon(R) Processor");
        const QString theirs = QStringLiteral("pthread-skylake-avx512-AMD EPYC");
        QCOMPARE(distinctName(mine, theirs), QStringLiteral("…Intel(R) Xeon(R) Processor"));
        QCOMPARE(distinctName(theirs, mine), QStringLiteral("…AMD EPYC"));
        QCOMPARE(distinctName(QStringLiteral("NVIDIA H200"), QStringLiteral("NVIDIA H100")),
                 QStringLiteral("NVIDIA H200"));
        QCOMPARE(distinctName(mine, mine), mine);
        QCOMPARE(distinctName(QStringLiteral("cpu-zen-4"), QStringLiteral("cpu-zen-4-AMD")),
                 QStringLiteral("cpu-zen-4"));

        const RealWindow real(QStringLiteral("silu/pocl/K00"));
        QVERIFY(real.ready);
        auto *gate = real.window->findChild<GateController *>();
        gate->setRunner([&](const gate::GateRequest &request, std::stop_token, gate::ProgressCallback) {
            gate::Trial trial = undecidedTrial();
            trial.environment.device = mine.toStdString();
            trial.candidate = files::sha256Hex(request.candidateText);
            trial.parent = files::sha256Hex(request.parentText);
            return Result<gate::Trial>(std::move(trial));
        });
        QSignalSpy finished(gate, &GateController::finished);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        real.find<QPlainTextEdit>("editor")->setFocus();
        real.press(Qt::Key_End, Qt::ControlModifier);
        real.type(QStringLiteral(" "));
        real.press(Qt::Key_Return, Qt::ControlModifier);
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, patienceMs);
        QVERIFY2(!finished[0][2].toString().isEmpty(), qPrintable(finished[0][3].toString()));
        QVERIFY(real.settle());
        const QAbstractItemModel *rows = real.find<LineageView>("lineage")->model();
        QStringList shown;
        for (int row = 0; row < rows->rowCount(); ++row)
            shown << rows->index(row, LineageModel::LatencyColumn).data().toString();
        QVERIFY2(shown.contains(formatLatency(1000) + QStringLiteral(" on …Intel(R) Xeon(R) Processor")),
                 qPrintable(shown.join(QLatin1Char('\n'))));
    }

    /// Editor, status bar and console have one word for what the gate is doing with a draft.
    void whatTheGateDoesHasOneName()
    {
        const RealWindow real(QStringLiteral("silu/pocl/K00"));
        QVERIFY(real.ready);
        auto *gate = real.window->findChild<GateController *>();
        const auto goOn = std::make_shared<QSemaphore>();
        gate->setRunner([goOn](const gate::GateRequest &, const std::stop_token &stop,
                               const gate::ProgressCallback &progress) {
            const auto wait = [&] {
                while (!goOn->tryAcquire(1, 20) && !stop.stop_requested()) {}
            };
            wait();
            progress({gate::Stage::Compile, -1, "waiting for another trial on the device"});
            wait();
            progress({gate::Stage::Compile, -1, "building"});
            wait();
            progress({gate::Stage::Correctness, 0.5, "case odd, seed 2 of 3"});
            wait();
            progress({gate::Stage::Profile, 0.5, "round 12"});
            wait();
            return Result<gate::Trial>(undecidedTrial());
        });
        QSignalSpy finished(gate, &GateController::finished);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        real.find<QPlainTextEdit>("editor")->setFocus();
        real.press(Qt::Key_Return, Qt::ControlModifier);
        const auto *strip = real.find<VerdictStrip>("editor");
        const auto *jobs = qobject_cast<RunConsole *>(real.window->panel(QStringLiteral("console")));
        QVERIFY(jobs);
        const auto inStatusBar = [&real](const QString &word) {
            for (const QToolButton *button : real.window->statusBar()->findChildren<QToolButton *>()) {
                if (button->isVisible() && button->text().endsWith(QStringLiteral(" · ") + word))
                    return true;
            }
            return false;
        };
        for (const char *each : {"starting", "waiting", "compiling", "checking", "timing"}) {
            const QString word = QLatin1String(each);
            QTRY_VERIFY2(inStatusBar(word), each);
            QVERIFY2(strip->accessibleName().startsWith(QStringLiteral("Verdict: %1. ").arg(word)),
                     qPrintable(strip->accessibleName()));
            QCOMPARE(jobs->model()->index(0, JobModel::VerdictColumn).data().toString(), word);
            goOn->release();
        }
        QTRY_COMPARE_WITH_TIMEOUT(finished.size(), 1, patienceMs);
    }

    void aSyntaxErrorDoesNotWaitForTheDevice()
    {
        const auto devices =
            gate::queryDevices(std::filesystem::path(klineage::test::programPath()) / "klineage-gate");
        if (!devices || devices->empty() || !devices->front().available)
            QSKIP("There is no OpenCL device.");
        const RealWindow real(QStringLiteral("silu/pocl/K00"));
        QVERIFY(real.ready);
        auto *gate = real.window->findChild<GateController *>();
        QSignalSpy finished(gate, &GateController::finished);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        auto *text = real.find<QPlainTextEdit>("editor");
        text->setFocus();
        real.press(Qt::Key_End, Qt::ControlModifier);
        real.type(QStringLiteral("}"));
        gate::DeviceTurn another;
        if (another.take(gate::DeviceTurn::meetingPlace(), "opencl", 600, {})
            != gate::DeviceTurn::Outcome::Had)
            QSKIP("Others keep the device.");
        real.press(Qt::Key_Return, Qt::ControlModifier);
        const bool ended = QTest::qWaitFor([&] { return !finished.isEmpty(); }, patienceMs);
        another.release();
        QVERIFY(ended);
        const auto trial = finished[0][1].value<gate::Trial>();
        QCOMPARE(gate::toString(trial.verdict.status), "compile_error");
        QVERIFY(real.find<VerdictStrip>("editor")->accessibleName().contains(QLatin1String("line")));
    }

    void aDraftOfAnotherLineageIsMarked()
    {
        const RealWindow real(QStringLiteral("silu/pocl/K00"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        auto *text = real.find<QPlainTextEdit>("editor");
        const auto *mark = real.find<QWidget>("editor", QStringLiteral("draftElsewhere"));
        const auto *tabs = real.find<QTabBar>("editor");
        QCOMPARE(tabs->tabText(0), QStringLiteral("Draft of K00 · silu/pocl"));
        QVERIFY(!mark->isVisible());
        QCOMPARE(text->accessibleName(), QStringLiteral("Draft from K00"));

        real.selection()->setLineage(QStringLiteral("softmax/pocl"), QStringLiteral("K02"));
        QVERIFY(real.settle());
        real.window->centre()->showPage(QStringLiteral("editor"));
        QTRY_VERIFY(mark->isVisible());
        QCOMPARE(tabs->tabText(0), QStringLiteral("↗ Draft of K00 · silu/pocl"));
        QVERIFY(tabs->tabToolTip(0).contains(QLatin1String("another lineage")));
        QVERIFY(text->accessibleName().contains(QLatin1String("silu/pocl")));
        const auto *said = mark->findChild<QLabel *>();
        QVERIFY2(said->text().contains(QLatin1String("silu/pocl"))
                     && said->text().contains(QLatin1String("softmax/pocl")),
                 qPrintable(said->text()));

        // A second draft, of what is shown, has no mark; the first one keeps its
        // own.
        real.focus("lineage");
        real.press(Qt::Key_Return);
        QTRY_COMPARE(tabs->count(), 2);
        QCOMPARE(tabs->currentIndex(), 1);
        QVERIFY(!mark->isVisible());
        QVERIFY(!tabs->tabText(1).startsWith(u'↗'));
        QVERIFY(tabs->tabText(0).startsWith(u'↗'));

        // Back in the first: a key shows its lineage, and the draft stays.
        const_cast<QTabBar *>(tabs)->setCurrentIndex(0);
        QTRY_VERIFY(mark->isVisible());
        auto *show = mark->findChild<QToolButton *>();
        show->setFocus();
        real.press(Qt::Key_Space);
        QVERIFY(real.settle());
        QCOMPARE(real.selection()->lineageKey(), QStringLiteral("silu/pocl"));
        QCOMPARE(real.row(), QStringLiteral("K00"));
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        QVERIFY(!mark->isVisible());
        QVERIFY(text->hasFocus());
        QVERIFY(tabs->tabText(1).startsWith(u'↗'));
    }
};

KLINEAGE_UI_TEST(TestDraftJourney)
#include "tst_draftjourney.moc"
