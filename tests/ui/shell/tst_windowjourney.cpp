// SPDX-License-Identifier: GPL-3.0-or-later
// The keys of the window as a whole, pressed in the real one: what they open, and that Esc closes it again.
#include "core/pool/gateclient.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/editor/editorpanel.h"
#include "ui/runs/gatecontroller.h"
#include "ui/runs/startdialog.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/keylistdialog.h"
#include "ui/shell/commands/quickopen.h"
#include "ui/style/fonts.h"

#include <QAccessible>
#include <QAction>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTimer>
#include <QWindow>

#include <algorithm>
#include <functional>
#include <utility>

using namespace klineage;
using namespace klineage::ui;

namespace {

const char *const panels[] = {"library", "lineage", "diff", "card", "profile", "trajectory"};

/// Presses a key that opens a modal dialog, and lets `act` work in it. Returns whether a T was opened; it is closed afterwards.
template <typename T>
bool inDialog(const RealWindow &real, Qt::Key key, Qt::KeyboardModifiers modifiers,
              const std::function<void(T *)> &act)
{
    bool opened = false;
    QTimer poll;
    QObject::connect(&poll, &QTimer::timeout, &poll, [&] {
        QWidget *modal = QApplication::activeModalWidget();
        if (!modal)
            return;
        poll.stop();
        if (T *dialog = qobject_cast<T *>(modal)) {
            opened = true;
            act(dialog);
        }
        if (modal->isVisible())
            QTest::keyClick(modal, Qt::Key_Escape);
        if (modal->isVisible())
            modal->close();
    });
    poll.start(20);
    real.press(key, modifiers);
    (void)QTest::qWaitFor([&] { return opened && !QApplication::activeModalWidget(); }, patienceMs);
    real.window->activateWindow(); // a window manager does
    return opened && takeKeys(*real.window);
}

void save(QFileDialog *dialog, const QString &path)
{
    // The folder is read in another thread, which may select something else in the list when it is done.
    dialog->findChild<QLineEdit *>(QStringLiteral("fileNameEdit"))->setText(path);
    QTest::mouseClick(dialog->findChild<QDialogButtonBox *>()->button(QDialogButtonBox::Save),
                      Qt::LeftButton);
}

} // namespace

class TestWindowJourney : public UiTest
{
    Q_OBJECT

private slots:
    void questionMarkListsTheKeys()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        QStringList shown;
        QVERIFY(inDialog<KeyListDialog>(real, Qt::Key_Question, Qt::NoModifier, [&](KeyListDialog *dialog) {
            auto *table = dialog->findChild<QTableView *>();
            auto *field = dialog->findChild<QLineEdit *>();
            QVERIFY(table && field);
            const int all = table->model()->rowCount();
            QTest::keyClicks(field, QStringLiteral("next change"));
            QVERIFY(QTest::qWaitFor([&] { return table->model()->rowCount() < all; }));
            for (int row = 0; row < table->model()->rowCount(); ++row)
                for (int column = 0; column < table->model()->columnCount(); ++column)
                    shown << table->model()->index(row, column).data().toString();
        }));
        QVERIFY2(shown.contains(QStringLiteral("F8")), qPrintable(shown.join(u'|')));
        QVERIFY(real.hasFocus("lineage"));
    }

    void thePaletteDoesACommand()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        const double before = textScale();
        real.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        auto *palette = real.window->findChild<QuickOpen *>();
        QVERIFY(palette && palette->isVisible());
        real.type(QStringLiteral("larger text"));
        real.press(Qt::Key_Return);
        QVERIFY(!palette->isVisible());
        QVERIFY(textScale() > before);
        real.press(Qt::Key_0, Qt::ControlModifier);
        QCOMPARE(textScale(), 1.0);

        real.press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(palette->isVisible());
        real.press(Qt::Key_Escape);
        QVERIFY(!palette->isVisible());
        QVERIFY(real.hasFocus("lineage"));
    }

    /// A whole name goes there, though another one has its letters at the beginnings of more words.
    void aWholeNameIsGoneTo()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *open = real.window->findChild<QuickOpen *>();
        for (const char *state : {"K08", "K02", "R07a"}) {
            real.focus("lineage");
            real.press(Qt::Key_P, Qt::ControlModifier);
            QVERIFY(open && open->isVisible());
            real.type(QStringLiteral("gemm/sm90/") + QLatin1String(state));
            real.press(Qt::Key_Return);
            QVERIFY(!open->isVisible());
            QCOMPARE(real.row(), QString::fromLatin1(state));
        }
        real.press(Qt::Key_P, Qt::ControlModifier);
        real.type(QStringLiteral("softmax/pocl"));
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->selection()->lineageKey(), QStringLiteral("softmax/pocl"));
        QCOMPARE(real.row(), QStringLiteral("K04"));
    }

    void textGrowsAndShrinks()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        QCOMPARE(textScale(), 1.0);
        const int height = QFontMetrics(QApplication::font()).height();
        for (int i = 0; i < 4; ++i)
            real.press(Qt::Key_Plus, Qt::ControlModifier);
        QVERIFY(textScale() > 1.3);
        QVERIFY(QFontMetrics(QApplication::font()).height() > height);
        for (int i = 0; i < 6; ++i)
            real.press(Qt::Key_Minus, Qt::ControlModifier);
        QVERIFY(textScale() < 1.0);
        real.press(Qt::Key_0, Qt::ControlModifier);
        QCOMPARE(textScale(), 1.0);
        QCOMPARE(QFontMetrics(QApplication::font()).height(), height);
    }

    void f6GoesRoundThePanesAndBack()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        QStringList visited;
        const auto focused = [&] {
            for (const char *panel : panels) {
                if (real.hasFocus(panel))
                    return QString::fromLatin1(panel);
            }
            return QStringLiteral("another");
        };
        for (int i = 0; i < 12; ++i) {
            real.press(Qt::Key_F6);
            visited << focused();
            if (visited.back() == QLatin1String("lineage"))
                break;
        }
        QCOMPARE(visited.back(), QStringLiteral("lineage"));
        for (const char *panel : {"library", "diff", "card", "profile"})
            QVERIFY2(visited.contains(QLatin1String(panel)), qPrintable(visited.join(u' ')));
        QStringList back;
        for (qsizetype i = 0; i < visited.size(); ++i) {
            real.press(Qt::Key_F6, Qt::ShiftModifier);
            back << focused();
        }
        std::reverse(back.begin(), back.end());
        back.append(back.takeFirst());
        QCOMPARE(back, visited);
    }

    void f9GivesAPaneTheWholeWindow()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("profile");
        real.press(Qt::Key_F9);
        QVERIFY(real.window->panel(QStringLiteral("profile"))->isVisible());
        for (const char *other : {"library", "lineage", "card"})
            QVERIFY2(!real.window->panel(QLatin1String(other))->isVisible(), other);
        QVERIFY(!real.window->centre()->isVisible());
        QVERIFY(real.hasFocus("profile"));
        real.press(Qt::Key_F9);
        for (const char *other : {"library", "lineage", "card", "profile"})
            QVERIFY2(real.window->panel(QLatin1String(other))->isVisible(), other);
        QVERIFY(real.window->centre()->isVisible());
        QVERIFY(real.hasFocus("profile"));
    }

    void f11TakesTheWholeScreen()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_F11);
        QVERIFY(real.window->windowState() & Qt::WindowFullScreen);
        QVERIFY(takeKeys(*real.window));
        real.press(Qt::Key_F11);
        QVERIFY(!(real.window->windowState() & Qt::WindowFullScreen));
    }

    void f10OpensTheMenu()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        bool opened = false;
        QTimer::singleShot(200, real.window.get(), [&] {
            if (auto *menu = qobject_cast<QMenu *>(QApplication::activePopupWidget())) {
                opened = true;
                QTest::keyClick(menu, Qt::Key_Escape);
            }
        });
        real.press(Qt::Key_F10);
        QTRY_VERIFY(opened);
        QVERIFY(!QApplication::activePopupWidget());
    }

    void f5ReadsTheWorkspaceAgain()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        const std::filesystem::path file =
            std::filesystem::path(real.folder.path().toStdString()) / "workloads/gemm/workload.toml";
        QFile text(QString::fromStdString(file.string()));
        QVERIFY(text.open(QIODevice::ReadWrite));
        QByteArray content = text.readAll();
        content.replace("title = \"", "title = \"Renamed ");
        QVERIFY(text.resize(0) && text.seek(0) && text.write(content) == content.size());
        text.close();
        real.press(Qt::Key_F5);
        QTRY_VERIFY_WITH_TIMEOUT(
            real.window->workspace()->isLoaded()
                && QString::fromStdString(real.window->workspace()->workload(QStringLiteral("gemm"))->title)
                       .startsWith(QLatin1String("Renamed ")),
            patienceMs);
        QCOMPARE(real.row(), QStringLiteral("K05")); // one stays where one was
    }

    void layoutsHaveKeys()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        QSet<QString> seen;
        for (const Qt::Key key : {Qt::Key_1, Qt::Key_2, Qt::Key_3, Qt::Key_4, Qt::Key_5}) {
            QWidget *focus = QApplication::focusWidget();
            QTest::keyClick(focus && focus->isVisible() ? focus : real.window.get(), key,
                            Qt::ControlModifier | Qt::AltModifier);
            QVERIFY(real.settle());
            QStringList shown;
            for (const char *panel : panels) {
                if (real.window->panel(QLatin1String(panel))->isVisible())
                    shown << QLatin1String(panel);
            }
            seen.insert(shown.join(u' ') + u'@' + real.window->centre()->page());
        }
        QCOMPARE(seen.size(), 5);
    }

    /// Whatever Tab or F6 leads to says what it is, in every layout.
    void whatTakesTheFocusHasAName()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        QStringList nameless;
        for (const char *layout : {"review", "curate", "run", "demo", "code"}) {
            QVERIFY(real.window->applyLayout(QLatin1String(layout)));
            QVERIFY(real.settle());
            QCoreApplication::processEvents(); // tab bars that are no longer needed go
            for (QWidget *widget : real.window->findChildren<QWidget *>()) {
                if (!widget->isVisible() || !widget->isEnabled() || !(widget->focusPolicy() & Qt::TabFocus))
                    continue;
                QAccessibleInterface *heard = QAccessible::queryAccessibleInterface(widget);
                if (!heard || heard->text(QAccessible::Name).isEmpty())
                    nameless << QLatin1String(widget->metaObject()->className()) + u' ' + widget->objectName()
                                    + u' ' + QLatin1String(widget->parentWidget()->metaObject()->className());
            }
        }
        nameless.removeDuplicates();
        QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(u'|')));
    }

    void exportAsksWhereAndWrites()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("trajectory");
        const QString path = real.folder.filePath(QStringLiteral("trajectory.svg"));
        QVERIFY(inDialog<QFileDialog>(real, Qt::Key_E, Qt::ControlModifier, [&](QFileDialog *dialog) {
            QVERIFY(dialog->windowTitle().startsWith(QLatin1String("Export ")));
            save(dialog, path);
        }));
        QFile written(path);
        QVERIFY(written.open(QIODevice::ReadOnly));
        QVERIFY(written.readAll().contains("<svg"));
    }

    void aReportIsOfWhatIsInView()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        const QString path = real.folder.filePath(QStringLiteral("gemm.html"));
        QVERIFY(inDialog<QFileDialog>(
            real, Qt::Key_E, Qt::ControlModifier | Qt::ShiftModifier, [&](QFileDialog *dialog) {
                QCOMPARE(dialog->windowTitle(), QStringLiteral("Report of gemm/sm90"));
                save(dialog, path);
            }));
        QVERIFY(QTest::qWaitFor([&] { return QFileInfo::exists(path); }, 4 * patienceMs));
        QFile written(path);
        QVERIFY(written.open(QIODevice::ReadOnly));
        const QByteArray html = written.readAll();
        QCOMPARE(html.count("<svg"), 4);
        QVERIFY(html.contains("lineage verify gemm/sm90"));
        const QAction *action =
            std::as_const(*real.window->actions()).find(QStringLiteral("window.stop"))->action;
        QVERIFY(QTest::qWaitFor([&] { return !action->isEnabled(); })); // nothing is left to stop
    }

    void openAsksForAFolder()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        QVERIFY(inDialog<QFileDialog>(real, Qt::Key_O, Qt::ControlModifier, [](QFileDialog *dialog) {
            QCOMPARE(dialog->fileMode(), QFileDialog::Directory);
        }));
        QVERIFY(real.window->workspace()->isLoaded());
        QCOMPARE(real.row(), QStringLiteral("K05"));
    }

    void aRunIsStartedFromTheKeyboard()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        // Its gates, chosen by keys: the launcher's field is there when it is asked for, and Alt+U reaches it.
        QVERIFY(inDialog<StartDialog>(
            real, Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier, [](StartDialog *dialog) {
                const RunPlace before = dialog->runPlace();
                QVERIFY(before.gates != RunPlace::Launched);
                QComboBox *gates = nullptr;
                for (QComboBox *box : dialog->findChildren<QComboBox *>())
                    if (box->findData(RunPlace::Launched) >= 0 && box->isVisible())
                        gates = box;
                QVERIFY(gates);
                gates->setFocus();
                QTest::keyClick(gates, Qt::Key_End);
                QCOMPARE(dialog->runPlace().gates, RunPlace::Launched);
                QTest::keyClick(dialog->windowHandle(), Qt::Key_U, Qt::AltModifier);
                auto *field = qobject_cast<QLineEdit *>(dialog->focusWidget());
                QVERIFY2(field, qPrintable(dialog->focusWidget()->metaObject()->className()));
                QTest::keyClicks(field, QStringLiteral("ssh lab"));
                QCOMPARE(dialog->runPlace().launcher, QStringLiteral("ssh lab"));
            }));
        QVERIFY2(real.hasFocus("lineage"), QApplication::focusWidget()
                                               ? QApplication::focusWidget()->metaObject()->className()
                                               : "nothing");
    }

    /// Enter opens the state, Ctrl+Enter gates what was typed, Shift+Esc stops that: the draft stays.
    void aTrialIsStoppedByKey()
    {
        const auto devices =
            gate::queryDevices(std::filesystem::path(klineage::test::programPath()) / "klineage-gate");
        if (!devices || devices->empty() || !devices->front().available)
            QSKIP("There is no OpenCL device.");
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        auto *text = real.find<QPlainTextEdit>("editor");
        QVERIFY(text);
        text->setFocus();
        text->moveCursor(QTextCursor::End);
        real.type(QStringLiteral("// stopped"));
        auto *controller = real.window->findChild<GateController *>();
        QSignalSpy finished(controller, &GateController::finished);
        QSignalSpy failed(controller, &GateController::failed);
        const std::size_t before =
            real.window->workspace()->lineage(QStringLiteral("softmax/pocl"))->branches.size();
        real.press(Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(controller->isRunning());
        real.press(Qt::Key_Escape, Qt::ShiftModifier);
        QTRY_VERIFY(!controller->isRunning());
        QVERIFY(finished.isEmpty());
        QCOMPARE(real.window->workspace()->lineage(QStringLiteral("softmax/pocl"))->branches.size(), before);
        QVERIFY(text->toPlainText().endsWith(QLatin1String("// stopped")));
    }
};

KLINEAGE_UI_TEST(TestWindowJourney)
#include "tst_windowjourney.moc"
