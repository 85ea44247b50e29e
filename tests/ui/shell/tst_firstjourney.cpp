// SPDX-License-Identifier: GPL-3.0-or-later
// The first minute: what a window opens on, the guide, the welcome, and a lineage from somebody's kernel, with real keys.
#include "core/pool/gateclient.h"
#include "core/workspace/story.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/begin/askplandialog.h"
#include "ui/begin/guidebar.h"
#include "ui/begin/importdialog.h"
#include "ui/begin/newlineagedialog.h"
#include "ui/begin/welcomepage.h"
#include "ui/runs/gatecontroller.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/quickopen.h"
#include "ui/shell/session.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QFile>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTimer>

#include <algorithm>

using namespace klineage;
using namespace klineage::ui;

namespace {

/// Two things are odd: it divides by nothing, and its parameters have names of their own.
const char *const wrongSoftmax =
    "// one work-item a row\n"
    "__kernel void my_softmax(__global const float *src, __global float *dst, int rows, int cols)\n"
    "{\n"
    "    int r = get_global_id(0);\n"
    "    if (r >= rows)\n"
    "        return;\n"
    "    float top = -INFINITY, sum = 0;\n"
    "    for (int c = 0; c < cols; ++c)\n"
    "        top = fmax(top, src[r * cols + c]);\n"
    "    for (int c = 0; c < cols; c += 64) {\n" // thousands of terms one after another are at the tolerance's edge
    "        float part = 0;\n"
    "        for (int i = c; i < min(cols, c + 64); ++i)\n"
    "            part += exp(src[r * cols + i] - top);\n"
    "        sum += part;\n"
    "    }\n"
    "    for (int c = 0; c < cols; ++c)\n"
    "        dst[r * cols + c] = exp(src[r * cols + c] - top);\n"
    "}\n";

/// What a program answers that is asked for a plan.
const char *const planAnswer = "cat > asked.json\n"
                               "cat <<'END'\n"
                               "One work-item a row.\n\n"
                               "```toml\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"my_softmax\"\n"
                               "grid = [\"ceil_div(R, 32)\"]\nblock = [32]\n"
                               "args = [\"x\", \"y\", \"int R\", \"int C\"]\n```\n"
                               "END\n";

/// A main window without a workspace of its own.
struct EmptyWindow {
    explicit EmptyWindow(const QString &root, const SessionState &session = {})
    {
        window.resize(1366, 768);
        window.restoreSession(session);
        window.resize(1366, 768);
        window.show();
        if (root.isEmpty())
            window.showNoWorkspace(QStringLiteral("No workspace was found."));
        else
            window.openWorkspace(root);
        ready = takeKeys(window) && QTest::qWaitFor([this] { return window.isSettled(); }, 20'000);
    }

    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        QWidget *focus = QApplication::focusWidget();
        QTest::keyClick(focus ? focus : &window, key, modifiers);
    }
    /// Tab until the button with this text has the focus.
    bool tabTo(const QString &text)
    {
        for (int i = 0; i < 160; ++i) {
            const auto *button = qobject_cast<QPushButton *>(QApplication::focusWidget());
            if (button && button->text().remove(u'&').startsWith(text))
                return true;
            press(i < 40 ? Qt::Key_Tab : Qt::Key_Backtab, i < 40 ? Qt::NoModifier : Qt::ShiftModifier);
        }
        return false;
    }

    MainWindow window;
    bool ready = false;
};

QString written(const QTemporaryDir &folder, const QString &name, const char *text)
{
    QFile file(folder.filePath(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(text) < 0)
        qFatal("cannot write %s", qPrintable(file.fileName()));
    return file.fileName();
}

/// Whatever is visible in it has room for its text.
QStringList cutTexts(const QWidget *page)
{
    QStringList cut;
    for (const QLabel *label : page->findChildren<QLabel *>()) {
        if (!label->isVisible() || label->text().isEmpty())
            continue;
        const int needed =
            label->wordWrap() ? label->heightForWidth(label->width()) : label->sizeHint().height();
        if (label->height() < needed || (!label->wordWrap() && label->width() < label->sizeHint().width()))
            cut << label->text();
    }
    for (const QPushButton *button : page->findChildren<QPushButton *>()) {
        if (button->isVisible() && button->width() < button->sizeHint().width())
            cut << button->text();
    }
    return cut;
}

bool hasOpenCl()
{
    const auto devices =
        gate::queryDevices(std::filesystem::path(klineage::test::programPath()) / "klineage-gate");
    return devices && std::any_of(devices->begin(), devices->end(), [](const gate::DeviceInfo &device) {
               return device.kind == kernel::DeviceKind::OpenCl && device.available;
           });
}

} // namespace

class TestFirstJourney : public UiTest
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        qputenv("PATH", QByteArray::fromStdString(klineage::test::programPath()) + ':' + qgetenv("PATH"));
        qRegisterMetaType<gate::Trial>("klineage::gate::Trial");
    }

    void opensOnTheBestStoryWithAGuide()
    {
        const RealWindow real(QString(), {1366, 768});
        QVERIFY(real.ready);
        const Workspace &workspace = real.window->workspace()->workspace();
        const lineage::Lineage *story = bestStory(workspace);
        QCOMPARE(real.selection()->lineageKey(), QString::fromStdString(story->key()));
        QCOMPARE(real.row(), QString::fromStdString(firstState(workspace, *story)));
        QVERIFY(story->states.size() > 10);
        QVERIFY(!real.card().isEmpty());

        GuideBar *guide = real.window->centre()->guide();
        QVERIFY(guide->isVisible());
        QCOMPARE(guide->lines().size(), 3);
        for (const char *part :
             {"K00", "K*", "Ctrl+Right", "A approves", "X rejects", "E asks", "? lists", "Ctrl+N"})
            QVERIFY2(guide->lines().join(u' ').contains(QLatin1String(part)), part);
        QVERIFY2(cutTexts(guide).isEmpty(), qPrintable(cutTexts(guide).join(u'|')));

        const QString before = real.row();
        real.focus("lineage");
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QVERIFY(real.row() != before);
        QVERIFY(guide->lines().front().contains(real.row()));
        QVERIFY(guide->isVisible());

        guide->setFocus();
        real.press(Qt::Key_Space);
        QVERIFY(!guide->isVisible());
        const SessionState state = real.window->sessionState();
        QVERIFY(state.guideDismissed);

        // Not again …
        MainWindow next;
        next.restoreSession(state);
        next.show();
        next.openWorkspace(real.folder.path());
        QVERIFY(QTest::qWaitFor([&] { return next.workspace()->isLoaded() && next.isSettled(); }, 20'000));
        QVERIFY(!next.centre()->guide()->isVisible());
        // … but when it is asked for, and Esc puts it away too.
        QVERIFY(takeKeys(next));
        QTest::keyClick(&next, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("show the guide"));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QVERIFY(next.centre()->guide()->isVisible());
        next.centre()->guide()->setFocus();
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
        QVERIFY(!next.centre()->guide()->isVisible());
    }

    /// Each line is ticked by what it tells; with the last tick the guide is gone for good.
    void theGuideGoesWhenItWasFollowed()
    {
        const RealWindow real(QString(), {1366, 768});
        QVERIFY(real.ready);
        const GuideBar *guide = real.window->centre()->guide();
        QVERIFY(guide->isVisible());
        const auto ticked = [guide] { return guide->lines().filter(QStringLiteral("✓")).size(); };
        QCOMPARE(ticked(), 0);
        real.focus("lineage");
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(ticked(), 2); // another step is seen, by the keys that walk
        QVERIFY(guide->isVisible());
        QVERIFY(!guide->lines().back().startsWith(QStringLiteral("✓")));
        QVERIFY2(cutTexts(guide).isEmpty(), qPrintable(cutTexts(guide).join(u'|')));
        withNextModal<QDialog>(real.window.get(),
                               [](QDialog &dialog) { QTest::keyClick(&dialog, Qt::Key_Escape); });
        real.press(Qt::Key_Question);
        QTRY_VERIFY(!guide->isVisible());
        QVERIFY(real.window->sessionState().guideDismissed);
    }

    void whatIsAskedForNeedsNoGuide()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {1366, 768});
        QVERIFY(real.ready);
        QVERIFY(!real.window->centre()->guide()->isVisible());
        QCOMPARE(real.row(), QStringLiteral("K05"));
    }

    void welcomesWithoutAWorkspace()
    {
        const QTemporaryDir used;
        SessionState session;
        session.recentWorkspaces = QStringList{used.path(), QStringLiteral("/no/such/folder")};
        EmptyWindow empty({}, session);
        QVERIFY(empty.ready);
        QVERIFY(empty.window.centre()->isWelcoming());
        WelcomePage *welcome = empty.window.centre()->welcome();
        QCOMPARE(welcome->why(), QStringLiteral("No workspace was found."));
        QVERIFY2(cutTexts(welcome).isEmpty(), qPrintable(cutTexts(welcome).join(u'|')));
        QVERIFY(empty.tabTo(QStringLiteral("Open a folder")));
        QVERIFY(empty.tabTo(QStringLiteral("Create one from the template…")));
        QVERIFY(empty.tabTo(used.path())); // and none that is gone
        for (const QLabel *label : empty.window.findChildren<QLabel *>())
            QVERIFY2(!label->isVisible() || !label->text().startsWith(QLatin1String("Reading")),
                     qPrintable(label->text()));
        // Its buttons stay reachable in a small window: the page scrolls.
        empty.window.resize(900, 520);
        QVERIFY(empty.tabTo(QStringLiteral("Open a folder")));
        QVERIFY(!QApplication::focusWidget()->visibleRegion().isEmpty());
        // A recent one that is no workspace (any more) says so, and can become one.
        QVERIFY(empty.tabTo(used.path()));
        empty.press(Qt::Key_Space);
        QTRY_VERIFY(welcome->why().contains(QLatin1String("is no workspace")));
        QVERIFY(empty.tabTo(QStringLiteral("Create one here")));
    }

    void anEmptyWorkspaceIsFilled()
    {
        const QTemporaryDir folder;
        for (const char *part : {"workloads", "skills"})
            QVERIFY(QDir(folder.path()).mkdir(QLatin1String(part)));
        EmptyWindow empty(folder.path());
        QVERIFY(empty.ready);
        QTRY_VERIFY(empty.window.centre()->isWelcoming());
        QVERIFY(empty.window.centre()->welcome()->why().contains(QLatin1String("nothing in it yet")));
        QVERIFY(empty.tabTo(QStringLiteral("New lineage from my kernel")));
        // Programs of a search are of a workload, and there is none.
        QVERIFY(empty.tabTo(QStringLiteral("Import a search's archive")));
        empty.press(Qt::Key_Space);
        QTRY_VERIFY(empty.window.findChild<ImportDialog *>());
        auto *import = empty.window.findChild<ImportDialog *>();
        QVERIFY(getsKeys(*import));
        QVERIFY2(import->summary().contains(QLatin1String("has no workload")), qPrintable(import->summary()));
        QTest::keyClick(import, Qt::Key_Escape);
        QTRY_VERIFY(!import->isVisible());
        QVERIFY(takeKeys(empty.window));
        QVERIFY(empty.tabTo(QStringLiteral("Create one here")));
        empty.press(Qt::Key_Space);
        QTRY_COMPARE(empty.window.selection()->lineageKey(), QStringLiteral("silu/pocl"));
        QVERIFY(!empty.window.centre()->isWelcoming());
        QTRY_VERIFY(empty.window.isSettled());
    }

    void aWrongPlanIsMarkedBesideItsField()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        real.window->beginLineage(written(real.folder, QStringLiteral("mine.cl"), wrongSoftmax));
        auto *dialog = real.window->findChild<NewLineageDialog *>();
        QVERIFY(dialog && getsKeys(*dialog));
        QTRY_VERIFY(dialog->isSettled());
        auto *grid = dialog->findChild<QLineEdit *>(QStringLiteral("field.grid"));
        auto *problem = dialog->findChild<QLabel *>(QStringLiteral("problem.grid"));
        auto *check = dialog->findChild<QLabel *>(QStringLiteral("newLineageCheck"));
        QVERIFY(grid && problem && check);
        QCOMPARE(grid->text(), QStringLiteral("ceil_div(R, 64)"));
        QVERIFY2(check->text().startsWith(u'✓'), qPrintable(check->text()));
        QVERIFY(dialog->candidate().contains(QLatin1String("args = [\"x\", \"y\", \"int R\", \"int C\"]")));
        grid->setFocus();
        QTest::keyClick(grid, Qt::Key_A, Qt::ControlModifier);
        QTest::keyClicks(grid, QStringLiteral("ceil_div(Q, 64)"));
        QTRY_VERIFY(problem->isVisible() && problem->text().contains(QLatin1String("'Q'")));
        // What cannot be gated is not.
        QTest::keyClick(grid, Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(!real.window->findChild<GateController *>()->isRunning());
        // What was typed is there again after the dialog was closed.
        QTest::keyClick(dialog, Qt::Key_Escape);
        QTRY_VERIFY(!dialog->isVisible());
        QVERIFY(takeKeys(*real.window));
        real.press(Qt::Key_N, Qt::ControlModifier);
        QVERIFY(getsKeys(*dialog));
        QCOMPARE(grid->text(), QStringLiteral("ceil_div(Q, 64)"));
        QCOMPARE(dialog->findChild<QComboBox *>(QStringLiteral("field.arg:3"))->currentText(),
                 QStringLiteral("int C"));
    }

    void theAuthorGivesThePlan()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        written(real.folder, QStringLiteral("plan.sh"), planAnswer);
        real.window->beginLineage(written(real.folder, QStringLiteral("mine.cl"), wrongSoftmax));
        auto *dialog = real.window->findChild<NewLineageDialog *>();
        QVERIFY(dialog && getsKeys(*dialog));
        QTRY_VERIFY(dialog->isSettled());
        const auto *grid = dialog->findChild<QLineEdit *>(QStringLiteral("field.grid"));
        const auto *problem = dialog->findChild<QLabel *>(QStringLiteral("problem.grid"));
        QCOMPARE(grid->text(), QStringLiteral("ceil_div(R, 64)"));
        ask(*dialog, QStringLiteral("sh plan.sh"));
        QVERIFY(dialog->isAsking());
        QTRY_VERIFY(!dialog->isAsking() && dialog->isSettled());
        QCOMPARE(grid->text(), QStringLiteral("ceil_div(R, 32)"));
        QVERIFY(dialog->candidate().contains(QLatin1String("block = [32]")));
        QVERIFY(dialog->findChild<QLabel *>(QStringLiteral("newLineageCheck"))->text().startsWith(u'✓'));
        QVERIFY(says(*dialog, QStringLiteral("Nothing has been gated")));
        QFile asked(real.folder.filePath(QStringLiteral("asked.json")));
        QVERIFY(asked.open(QIODevice::ReadOnly) && asked.readAll().contains("my_softmax"));

        // A wrong answer is checked as what is typed, and stands beside its field.
        written(real.folder, QStringLiteral("plan.sh"),
                QByteArray(planAnswer).replace("(R, 32)", "(Q, 32)").constData());
        ask(*dialog, QStringLiteral("sh plan.sh"));
        QTRY_VERIFY(!dialog->isAsking() && dialog->isSettled());
        QTRY_VERIFY(problem->isVisible() && problem->text().contains(QLatin1String("'Q'")));
        // Words are none, and leave the form as it is.
        ask(*dialog, QStringLiteral("echo I would rather not."));
        QTRY_VERIFY(!dialog->isAsking());
        QCOMPARE(grid->text(), QStringLiteral("ceil_div(Q, 32)"));
        QVERIFY(says(*dialog, QStringLiteral("the form is as it was")));
        // It can be stopped.
        ask(*dialog, QStringLiteral("sleep 600"));
        QVERIFY(dialog->isAsking() && takeKeys(*dialog));
        QTest::keyClick(dialog, Qt::Key_S, Qt::AltModifier);
        QTRY_VERIFY(!dialog->isAsking());
        QCOMPARE(grid->text(), QStringLiteral("ceil_div(Q, 32)"));
    }

    void aKernelIsDroppedOnTheWindow()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(written(real.folder, QStringLiteral("mine.cl"), wrongSoftmax))});
        QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        enter.ignore();
        QApplication::sendEvent(real.window.get(), &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(real.window.get(), &drop);
        auto *dialog = real.window->findChild<NewLineageDialog *>();
        QTRY_VERIFY(dialog->isVisible() && dialog->isSettled());
        QVERIFY(dialog->candidate().contains(QLatin1String("my_softmax")));

        QMimeData other;
        other.setUrls({QUrl::fromLocalFile(written(real.folder, QStringLiteral("mine.txt"), "x"))});
        QDragEnterEvent refused(QPoint(50, 50), Qt::CopyAction, &other, Qt::LeftButton, Qt::NoModifier);
        refused.ignore();
        QApplication::sendEvent(real.window.get(), &refused);
        QVERIFY(!refused.isAccepted());
    }

    void withoutADeviceItIsSavedUngated()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        real.window->beginLineage(written(
            real.folder, QStringLiteral("Mine One.cu"),
            "extern \"C\" __global__ void softmax(const float *x, float *y, int R, int C)\n"
            "{ int r = blockIdx.x * blockDim.x + threadIdx.x; for (int c = 0; c < C; ++c) y[r * C + c] = x[r]; }\n"));
        auto *dialog = real.window->findChild<NewLineageDialog *>();
        QVERIFY(getsKeys(*dialog));
        QTRY_VERIFY(dialog->isSettled());
        QSignalSpy begun(dialog, &NewLineageDialog::begun);
        for (QLineEdit *line : dialog->findChildren<QLineEdit *>()) {
            if (line->accessibleName() == QLatin1String("Platform"))
                line->setText(QStringLiteral("sm90"));
        }
        QTRY_VERIFY(dialog->isSettled());
        dialog->saveUngated();
        QTRY_COMPARE(begun.count(), 1);
        QCOMPARE(begun[0][0].toString(), QStringLiteral("softmax/sm90-mine-one"));
        QTRY_COMPARE(real.selection()->lineageKey(), QStringLiteral("softmax/sm90-mine-one"));
        QTRY_VERIFY(real.settle());
        const lineage::Lineage *lineage =
            real.window->workspace()->lineage(QStringLiteral("softmax/sm90-mine-one"));
        QVERIFY(lineage && lineage->trials.empty());
    }

    /// From nothing to a lineage.
    void fromAnEmptyFolderToALineage()
    {
        if (!hasOpenCl())
            QSKIP("There is no OpenCL device.");
        const QTemporaryDir folder;
        const QTemporaryDir elsewhere;
        const QString file = written(elsewhere, QStringLiteral("My softmax.cl"), wrongSoftmax);
        EmptyWindow empty(folder.path());
        QVERIFY(empty.ready);
        QTRY_VERIFY(empty.window.centre()->isWelcoming());
        QVERIFY(empty.tabTo(QStringLiteral("Create one here")));
        empty.press(Qt::Key_Space);
        QTRY_COMPARE(empty.window.selection()->lineageKey(), QStringLiteral("silu/pocl"));
        QTRY_VERIFY(empty.window.isSettled());

        empty.press(Qt::Key_N, Qt::ControlModifier);
        auto *dialog = empty.window.findChild<NewLineageDialog *>();
        QVERIFY(getsKeys(*dialog));
        empty.window.beginLineage(file); // as a file that is dropped on the window
        QTRY_VERIFY(dialog->isSettled() && dialog->candidate().contains(QLatin1String("my_softmax")));

        auto *controller = empty.window.findChild<GateController *>();
        QSignalSpy finished(controller, &GateController::finished);
        QSignalSpy failed(controller, &GateController::failed);
        QSignalSpy begun(dialog, &NewLineageDialog::begun);
        QTest::keyClick(dialog, Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(controller->isRunning());
        QTRY_VERIFY_WITH_TIMEOUT(finished.count() + failed.count() == 1, 180'000);
        QVERIFY2(failed.isEmpty(), qPrintable(failed.isEmpty() ? QString() : failed[0][1].toString()));
        QCOMPARE(gate::toString(finished[0][1].value<gate::Trial>().verdict.status), "wrong");
        // Nothing is lost, nothing is written; it is mended where it stands.
        QVERIFY(dialog->isVisible());
        QVERIFY(!QFileInfo::exists(folder.filePath(QStringLiteral("workloads/softmax"))));
        QPlainTextEdit *source = nullptr; // beside the preview of the candidate
        for (QPlainTextEdit *edit : dialog->findChildren<QPlainTextEdit *>()) {
            if (edit->toPlainText() == QLatin1String(wrongSoftmax))
                source = edit;
        }
        QVERIFY(source && source->toPlainText() == QLatin1String(wrongSoftmax));
        QTextCursor cursor =
            source->document()->find(QStringLiteral("dst[r * cols + c] = exp(src[r * cols + c] - top)"));
        cursor.clearSelection();
        source->setTextCursor(cursor);
        source->setFocus();
        QTest::keyClicks(source, QStringLiteral(" / sum"));
        QTRY_VERIFY(dialog->isSettled() && dialog->candidate().contains(QLatin1String("top) / sum;")));
        QTest::keyClick(source, Qt::Key_Return, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(finished.count() + failed.count() == 2, 240'000);
        QVERIFY2(failed.isEmpty(), qPrintable(failed.isEmpty() ? QString() : failed[0][1].toString()));
        const gate::Verdict mended = finished[1][1].value<gate::Trial>().verdict;
        QVERIFY2(mended.status == gate::VerdictStatus::Correct, mended.message.c_str());
        QTRY_COMPARE(begun.count(), 1);
        const QString key = begun[0][0].toString();
        QVERIFY2(key.startsWith(QLatin1String("softmax/")) && key.endsWith(QLatin1String("-my-softmax")),
                 qPrintable(key));
        QTRY_COMPARE(empty.window.selection()->lineageKey(), key);
        QTRY_COMPARE(empty.window.selection()->row(), QStringLiteral("K00"));
        QVERIFY(!dialog->isVisible());
        const lineage::Lineage *lineage = empty.window.workspace()->lineage(key);
        QVERIFY(lineage && lineage->notices.empty());
        QVERIFY(lineage->trialOf(lineage->states.front()));
        // It is done with: the next one begins empty.
        QVERIFY(takeKeys(empty.window));
        empty.press(Qt::Key_N, Qt::ControlModifier);
        QVERIFY(getsKeys(*dialog));
        QVERIFY(source->toPlainText().isEmpty());
    }

private:
    /// By keys: the dialog's command, the author, Return.
    static void ask(NewLineageDialog &dialog, const QString &command)
    {
        QVERIFY(takeKeys(dialog));
        QString problem = QStringLiteral("no dialog");
        withNextModal<AskPlanDialog>(&dialog, [&problem, command](AskPlanDialog &asked) {
            AskPlanDialog *whom = &asked;
            problem.clear();
            auto *provider = whom->findChild<QComboBox *>(QStringLiteral("author.provider"));
            provider->setFocus();
            QTest::keyClicks(provider, QStringLiteral("exec"));
            auto *field = whom->findChild<QLineEdit *>(QStringLiteral("author.command"));
            field->setFocus();
            field->selectAll();
            QTest::keyClicks(field, command);
            if (!whom->askButton()->isEnabled())
                problem = whom->costLabel()->text();
            QTest::keyClick(field, problem.isEmpty() ? Qt::Key_Return : Qt::Key_Escape);
        });
        QTest::keyClick(&dialog, Qt::Key_A, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }

    static bool says(const NewLineageDialog &dialog, const QString &part)
    {
        const QList<QLabel *> labels = dialog.findChildren<QLabel *>();
        return std::any_of(labels.begin(), labels.end(), [&](const QLabel *label) {
            return label->isVisible() && label->text().contains(part);
        });
    }
};

KLINEAGE_UI_TEST(TestFirstJourney)
#include "tst_firstjourney.moc"
