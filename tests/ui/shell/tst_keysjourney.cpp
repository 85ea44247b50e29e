// SPDX-License-Identifier: GPL-3.0-or-later
// The keys that are painted and documented, pressed in the real window.
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/cards/cardpanel.h"
#include "ui/cards/verdictbar.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/library/librarypanel.h"
#include "ui/models/viewed.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/keymodel.h"
#include "ui/shell/commands/quickopen.h"
#include "ui/style/theme.h"

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QTextBrowser>
#include <QTreeView>

#include <qcustomplot.h>

using namespace klineage;
using namespace klineage::ui;

namespace {

QAction *diffCommand(const RealWindow &real, const char *id)
{
    return std::as_const(*real.window->actions()).find(QLatin1String(id))->action;
}

} // namespace

class TestKeysJourney : public UiTest
{
    Q_OBJECT

private slots:
    /// The layout of the story is about the story; who leaves it has a pane that takes keys.
    void layoutsKeepTheKeys()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"));
        QVERIFY(real.ready);
        constexpr auto ctrlAlt = Qt::ControlModifier | Qt::AltModifier;
        real.focus("lineage");
        real.press(Qt::Key_4, ctrlAlt);
        QTRY_VERIFY(real.hasFocus("story"));
        real.press(Qt::Key_2, ctrlAlt);
        QTRY_VERIFY(!real.hasFocus("story") && QApplication::focusWidget()
                    && QApplication::focusWidget()->isVisible());
        QTRY_VERIFY(real.hasFocus(real.window->centre()->page().toLatin1().constData()));
        real.press(Qt::Key_F8); // a key of panes
        QVERIFY(real.settle());
        // What keeps its pane keeps the keys.
        real.focus("library");
        real.press(Qt::Key_1, ctrlAlt);
        QVERIFY(real.settle());
        QVERIFY(real.hasFocus("library"));
    }

    /// Every letter that a button or the README names is a command: in the palette, in the list of keys, with its key.
    void everyPaintedKeyIsACommand_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QString>("key");
        QTest::newRow("approve") << "card.approve"
                                 << "A";
        QTest::newRow("reject") << "card.reject"
                                << "X";
        QTest::newRow("evidence") << "card.needEvidence"
                                  << "E";
        QTest::newRow("comment") << "card.comment"
                                 << "C";
        QTest::newRow("viewed") << "review.viewed"
                                << "V";
        QTest::newRow("undo") << "card.undo"
                              << "Ctrl+Z";
        QTest::newRow("next card") << "review.nextCard"
                                   << "Ctrl+Down";
        QTest::newRow("previous card") << "review.previousCard"
                                       << "Ctrl+Up";
        QTest::newRow("next step") << "lineage.nextStep"
                                   << "Ctrl+Right";
        QTest::newRow("previous step") << "lineage.previousStep"
                                       << "Ctrl+Left";
        QTest::newRow("baseline") << "lineage.setBaseline"
                                  << "B";
        QTest::newRow("next change") << "diff.nextHunk"
                                     << "F8";
        QTest::newRow("previous change") << "diff.previousHunk"
                                         << "Shift+F8";
        QTest::newRow("unified") << "diff.unified"
                                 << "U";
        QTest::newRow("fold") << "diff.fold"
                              << "Z";
        QTest::newRow("moves") << "diff.moves"
                               << "M";
        QTest::newRow("whitespace") << "diff.whitespace"
                                    << "W";
        QTest::newRow("keys") << "window.keys"
                              << "?";
        QTest::newRow("palette") << "window.palette"
                                 << "Ctrl+Shift+P";
        QTest::newRow("go to") << "window.goTo"
                               << "Ctrl+P";
        QTest::newRow("export") << "window.export"
                                << "Ctrl+E";
        QTest::newRow("stop") << "window.stop"
                              << "Shift+Esc";
        QTest::newRow("panes") << "window.nextPane"
                               << "F6";
        QTest::newRow("machine code") << "machine.show"
                                      << "Ctrl+Shift+M";
        QTest::newRow("next hottest") << "machine.nextHottest"
                                      << "F4";
        QTest::newRow("previous hottest") << "machine.previousHottest"
                                          << "Shift+F4";
        QTest::newRow("SASS or PTX") << "machine.switchForm"
                                     << "Alt+P";
        QTest::newRow("instruction mix") << "machine.mix"
                                         << "Alt+I";
        QTest::newRow("copy instructions") << "machine.copy"
                                           << "Ctrl+C";
        QTest::newRow("filter") << "library.filter"
                                << "/";
        QTest::newRow("facets") << "library.facets"
                                << "Ctrl+Shift+F";
        QTest::newRow("whole library") << "library.clearFilter"
                                       << "Esc";
        QTest::newRow("select") << "library.selectAndGoOn"
                                << "Space";
        QTest::newRow("skip") << "library.skip"
                              << "Shift+Space";
        QTest::newRow("select all") << "library.selectAll"
                                    << "Ctrl+A";
        QTest::newRow("revisions") << "card.compare"
                                   << "D";
        QTest::newRow("start a run") << "runs.start"
                                     << "Ctrl+Shift+R";
    }

    void everyPaintedKeyIsACommand()
    {
        QFETCH(QString, id);
        QFETCH(QString, key);
        const MainWindow window;
        const auto *entry = std::as_const(*window.actions()).find(id);
        QVERIFY(entry);
        QCOMPARE(entry->action->shortcut().toString(QKeySequence::PortableText), key);
        KeyModel keys(window.actions());
        QVERIFY(!keys.match(keys.index(0, 0), KeyModel::IdRole, id, 1, Qt::MatchExactly).isEmpty());
        // The palette has every command that can be done at the moment.
        entry->action->setEnabled(true);
        const auto palette = commandEntries(*window.actions());
        QVERIFY(std::any_of(palette.begin(), palette.end(), [&](const QuickEntry &shown) {
            return shown.title == entry->action->text().remove(QLatin1Char('&'));
        }));
    }

    void verdictsAreGivenAndTakenBackByKeys()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        const QString card = real.card();
        QCOMPARE(card, QStringLiteral("mma-sync-fragments"));
        const std::size_t before = real.record(card).reviews.size();
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        QCOMPARE(real.record(card).standingReview()->verdict, skills::ReviewVerdict::Approve);
        QCOMPARE(real.card(), card); // a step is looked at, not a list of cards

        real.press(Qt::Key_X);
        QVERIFY(real.hasFocus("card"));
        real.type(QStringLiteral("axcvz, as typed"));
        real.press(Qt::Key_Return);
        QVERIFY(real.hasFocus("lineage")); // where one was
        QVERIFY(real.written());
        QCOMPARE(real.record(card).standingReview()->verdict, skills::ReviewVerdict::Reject);
        QCOMPARE(real.record(card).standingReview()->reason, std::string("axcvz, as typed"));

        real.press(Qt::Key_C);
        real.type(QStringLiteral("a remark"));
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        QCOMPARE(real.record(card).reviews.back().verdict, skills::ReviewVerdict::Comment);
        QCOMPARE(real.record(card).standingReview()->verdict, skills::ReviewVerdict::Reject);

        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        QCOMPARE(real.record(card).standingReview()->verdict, skills::ReviewVerdict::Approve);
        QCOMPARE(real.record(card).reviews.size(), before + 5); // nothing is erased
    }

    /// Letters act in lists, graphs and the diff, and are letters where one types.
    void lettersActInEveryPaneButNotInFields_data()
    {
        QTest::addColumn<QByteArray>("panel");
        for (const char *panel : {"library", "lineage", "diff", "card", "profile", "trajectory"})
            QTest::newRow(panel) << QByteArray(panel);
    }

    void lettersActInEveryPaneButNotInFields()
    {
        QFETCH(QByteArray, panel);
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus(panel.constData());
        QVERIFY(real.hasFocus(panel.constData()));
        QAction *unified = diffCommand(real, "diff.unified");
        const std::pair<Qt::Key, const char *> toggles[] = {{Qt::Key_U, "diff.unified"},
                                                            {Qt::Key_Z, "diff.fold"},
                                                            {Qt::Key_M, "diff.moves"},
                                                            {Qt::Key_W, "diff.whitespace"}};
        for (const auto &[key, id] : toggles) {
            const bool before = diffCommand(real, id)->isChecked();
            real.press(key);
            QVERIFY2(diffCommand(real, id)->isChecked() != before, id);
            real.press(key);
            QCOMPARE(diffCommand(real, id)->isChecked(), before);
        }
        QVERIFY(real.settle());
        real.press(Qt::Key_B);
        QCOMPARE(real.selection()->baseline(), QStringLiteral("K05"));
        real.press(Qt::Key_B);
        QVERIFY(real.selection()->baseline().isEmpty());
        // Steps and changes, from here and without going anywhere else.
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(real.row(), QStringLiteral("K04"));
        real.press(Qt::Key_Left, Qt::ControlModifier);
        QCOMPARE(real.row(), QStringLiteral("K05"));
        QVERIFY(real.settle());
        // Which one it is now depends on which of both documents came in time to keep its place.
        const DiffView *view = qobject_cast<DiffPanel *>(real.window->panel(QStringLiteral("diff")))->view();
        const int change = view->currentHunk();
        real.press(Qt::Key_F8);
        QCOMPARE(view->currentHunk(), change + 1);
        QVERIFY(real.hasFocus(panel.constData()));

        QLineEdit *field = real.find<QLineEdit>("library", QStringLiteral("filterField"));
        field->setFocus();
        const bool before = unified->isChecked();
        real.type(QStringLiteral("uzmwbaxcv"));
        QCOMPARE(field->text(), QStringLiteral("uzmwbaxcv"));
        QCOMPARE(unified->isChecked(), before);
        QVERIFY(real.selection()->baseline().isEmpty());
    }

    void fitBringsTheWholeTrajectoryBack()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("trajectory");
        auto *plot = qobject_cast<QCustomPlot *>(QApplication::focusWidget());
        QVERIFY(plot);
        const QCPRange whole = plot->xAxis->range();
        plot->xAxis->setRange(0, 1);
        real.press(Qt::Key_F);
        QCOMPARE(plot->xAxis->range().upper, whole.upper);
        QCOMPARE(plot->xAxis->range().lower, whole.lower);
    }

    void walkingShowsTheDiffThatItWalksThrough()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.window->centre()->showPage(QStringLiteral("experiments"));
        real.focus("lineage");
        real.press(Qt::Key_F8);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("diff"));
    }

    void viewedStaysAndGoesOn()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_V);
        QCOMPARE(real.row(), QStringLiteral("K04"));
        const lineage::Lineage &gemm = *real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        const QString key = Viewed::stepKey(QStringLiteral("gemm/sm90"), QStringLiteral("K05"),
                                            QString::fromStdString(gemm.findState("K05")->trial));
        QVERIFY(real.window->viewed()->contains(key));
        Viewed again;
        again.setWorkspace(real.folder.path());
        QVERIFY(again.contains(key));
        again.setWorkspace(real.folder.path() + QStringLiteral("/other"));
        QVERIFY(!again.contains(key));
    }

    void aRowWithoutACardOffersNoVerdict_data()
    {
        QTest::addColumn<QString>("row");
        QTest::addColumn<QString>("says");
        QTest::newRow("the root") << "K00"
                                  << "No card for this step";
        QTest::newRow("an attempt") << "R07a"
                                    << "No card for this attempt";
    }

    void aRowWithoutACardOffersNoVerdict()
    {
        QFETCH(QString, row);
        QFETCH(QString, says);
        const RealWindow real;
        QVERIFY(real.ready);
        QVERIFY(!real.card().isEmpty());
        real.selection()->setRow(row);
        QVERIFY(real.card().isEmpty());
        auto *panel = qobject_cast<CardPanel *>(real.window->panel(QStringLiteral("card")));
        QVERIFY(!panel->verdicts()->isVisible());
        const auto labels = panel->findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [&says](const QLabel *label) {
            return label->isVisible() && label->text() == says;
        }));
        real.focus("lineage");
        real.press(Qt::Key_A);
        QVERIFY(!real.window->reviewer()->isBusy());
        QCOMPARE(real.row(), row); // nor does the letter search the list
    }

    void aStepWithoutACardCanBeLifted()
    {
        const RealWindow real(QStringLiteral("softmax/sm90/K07"));
        QVERIFY(real.ready);
        QVERIFY(real.card().isEmpty());
        QPushButton *lift = nullptr;
        for (QPushButton *button :
             real.window->panel(QStringLiteral("card"))->findChildren<QPushButton *>()) {
            if (button->isVisible() && button->text().startsWith(QLatin1String("Lift")))
                lift = button;
        }
        QVERIFY(lift);
        QVERIFY(
            real.find<QLabel>("card", QStringLiteral("noCard"))->text().contains(QLatin1String("occupancy")));
    }

    void theVerdictBarNamesItsCard()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *panel = qobject_cast<CardPanel *>(real.window->panel(QStringLiteral("card")));
        QVERIFY(panel->verdicts()->standing().contains(QLatin1String("mma-sync-fragments")));
        real.focus("lineage");
        real.press(Qt::Key_Left, Qt::ControlModifier);
        QVERIFY(panel->verdicts()->standing().contains(real.card()));
        QVERIFY(!panel->verdicts()->standing().contains(QLatin1String("mma-sync-fragments")));
    }

    /// The frame of the pane with the focus is painted in the accent colour, and only that one.
    void theFocusIsVisible()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const char *docks[] = {"library", "lineage", "card", "profile"};
        for (const char *focused : docks) {
            real.focus(focused);
            QCoreApplication::processEvents();
            for (const char *dock : docks) {
                const QWidget *frame = real.window->panel(QLatin1String(dock))->parentWidget();
                const QImage image = const_cast<QWidget *>(frame)->grab().toImage();
                const QColor edge = image.pixelColor(0, image.height() / 2);
                const bool lit = edge == Theme::current().accent;
                QVERIFY2(lit == (dock == focused),
                         qPrintable(QStringLiteral("%1 while %2: %3")
                                        .arg(QLatin1String(dock), QLatin1String(focused), edge.name())));
            }
        }
        real.focus("diff");
        QCoreApplication::processEvents();
        const QImage image = real.window->centre()->grab().toImage();
        QCOMPARE(image.pixelColor(0, image.height() / 2), Theme::current().accent);
    }

    /// Enter after going somewhere acts on what was gone to, not on what had the focus before.
    void enterAfterGoingSomewhereOpensThat()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("profile");
        real.press(Qt::Key_P, Qt::ControlModifier);
        real.type(QStringLiteral("gemm/sm90/K02"));
        real.press(Qt::Key_Return);
        QCOMPARE(real.row(), QStringLiteral("K02"));
        QVERIFY(real.hasFocus("lineage"));
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
    }
};

KLINEAGE_UI_TEST(TestKeysJourney)
#include "tst_keysjourney.moc"

#include <algorithm>
