// SPDX-License-Identifier: GPL-3.0-or-later
// Where the focus is, and what is in view, after keys that lead elsewhere; in the real window.
#include "core/trial/trial.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/cards/cardpanel.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/editor/codeedit.h"
#include "ui/editor/editorpanel.h"
#include "ui/editor/verdictstrip.h"
#include "ui/library/librarypanel.h"
#include "ui/models/librarymodel.h"
#include "ui/shell/centre.h"
#include "ui/story/storypanel.h"

#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QSet>
#include <QTextBlock>
#include <QToolButton>
#include <QTreeView>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr auto ctrlAlt = Qt::ControlModifier | Qt::AltModifier;

template <typename Panel>
Panel *panelOf(const RealWindow &real, const char *id)
{
    return qobject_cast<Panel *>(real.window->panel(QLatin1String(id)));
}

/// The current row is seen, but for a pixel that a tree may leave out.
bool isCurrentSeen(const QAbstractItemView *view)
{
    const QRect row = view->visualRect(view->currentIndex());
    return view->isVisible() && row.isValid() && row.top() >= 0 && row.bottom() <= view->viewport()->height();
}

QString currentKey(const QTreeView *list)
{
    return list->currentIndex().data(LibraryModel::KeyRole).toString();
}

/// A verdict with a sentence that no editor is wide enough for.
gate::Trial longTrial()
{
    gate::Trial trial;
    trial.verdict.status = gate::VerdictStatus::Wrong;
    trial.verdict.stage = gate::Stage::Correctness;
    trial.verdict.message = "The element y[12, 345] is 0.5, where 0.25 was expected; "
                            "of 4096 elements 4095 lie outside of the tolerance of the workload, "
                            "and the largest difference is 0.75 at y[1023, 1023].";
    return trial;
}

} // namespace

class TestFocusJourney : public UiTest
{
    Q_OBJECT

private slots:
    /// F8 in a draft goes through its findings and changes; the cursor moves, the focus stays.
    void theNextChangeOfADraft()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        CodeEdit *edit = panelOf<EditorPanel>(real, "editor")->edit();
        QVERIFY(edit->hasFocus());
        const int there = edit->textCursor().position();
        real.press(Qt::Key_F8); // nothing differs yet
        QVERIFY(edit->hasFocus());
        QCOMPARE(edit->textCursor().position(), there);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));

        // A comment at the end and one at the beginning of the code.
        const auto lineOf = [edit](const QString &text) {
            return edit->document()->find(text).blockNumber();
        };
        real.press(Qt::Key_End, Qt::ControlModifier);
        real.press(Qt::Key_Up);
        real.press(Qt::Key_End);
        real.type(QStringLiteral(" // second"));
        edit->goTo(edit->document()->find(QStringLiteral("float sum")).selectionStart());
        real.press(Qt::Key_End);
        real.type(QStringLiteral(" // first"));
        real.press(Qt::Key_Home, Qt::ControlModifier);
        real.press(Qt::Key_F8);
        QVERIFY(edit->hasFocus());
        QCOMPARE(edit->textCursor().blockNumber(), lineOf(QStringLiteral("// first")));
        real.press(Qt::Key_F8);
        QCOMPARE(edit->textCursor().blockNumber(), lineOf(QStringLiteral("// second")));
        QVERIFY(edit->cursorRect().top() >= 0 && edit->cursorRect().bottom() <= edit->viewport()->height());
        real.press(Qt::Key_F8); // round
        QCOMPARE(edit->textCursor().blockNumber(), lineOf(QStringLiteral("// first")));
        real.press(Qt::Key_F8, Qt::ShiftModifier);
        QCOMPARE(edit->textCursor().blockNumber(), lineOf(QStringLiteral("// second")));

        // A finding is a place as well: a plan that names no kernel.
        edit->goTo(edit->document()->find(QStringLiteral("kernel = ")).selectionStart());
        const int plan = edit->textCursor().blockNumber();
        for (int i = 0; i < 3; ++i)
            real.press(Qt::Key_Delete);
        QTRY_VERIFY(!edit->diagnostics().empty());
        real.press(Qt::Key_End, Qt::ControlModifier);
        QSet<int> lines;
        for (int i = 0; i < 4; ++i) {
            real.press(Qt::Key_F8);
            lines << edit->textCursor().blockNumber();
        }
        QVERIFY(lines.contains(plan));
        QVERIFY(lines.contains(std::max(0, edit->diagnostics().front().line - 1)));
        QVERIFY(edit->hasFocus());
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        // From elsewhere it is the diff that is walked through.
        real.focus("lineage");
        real.press(Qt::Key_F8);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("diff"));
        QVERIFY(real.hasFocus("lineage"));
    }

    /// F7 in a draft goes through its changes, those of the lines with most samples first, and does not leave it.
    void theMostSampledChangeOfADraft()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"));
        QVERIFY(real.ready);
        const lineage::Lineage *lineage = real.window->workspace()->lineage(QStringLiteral("gemm/sm90"));
        const gate::Trial *trial = lineage::findRow(*lineage, "K05")->trial;
        QVERIFY(trial && !trial->hotspots.empty());
        const auto samplesOf = [trial](int line) {
            qint64 here = 0;
            for (const gate::Hotspot &spot : trial->hotspots)
                here += spot.line == line ? spot.samples : 0;
            return here;
        };
        real.focus("lineage");
        real.press(Qt::Key_Return);
        CodeEdit *edit = panelOf<EditorPanel>(real, "editor")->edit();
        QVERIFY(edit->hasFocus());
        const auto stays = [&] {
            return edit->hasFocus() && real.window->centre()->page() == QLatin1String("editor");
        };
        real.press(Qt::Key_F7); // nothing differs yet
        QVERIFY(stays());
        QVERIFY2(real.said().contains(QStringLiteral("no change yet")), qPrintable(real.said()));

        // A line without samples, and behind it the hottest one.
        const int hottest = trial->hotspots.front().line;
        int cold = hottest - 2;
        while (cold > 0 && samplesOf(cold) > 0)
            --cold;
        QVERIFY(cold > 0 && hottest > 0);
        for (const int line : {cold, hottest}) {
            edit->goTo(edit->document()->findBlockByNumber(line - 1).position());
            real.press(Qt::Key_End);
            real.type(QStringLiteral(" // changed"));
        }
        real.press(Qt::Key_Home, Qt::ControlModifier);
        real.press(Qt::Key_F7);
        QVERIFY(stays());
        QCOMPARE(edit->textCursor().blockNumber() + 1, hottest);
        QVERIFY2(real.said().startsWith(QStringLiteral("Change 1 of 2 by samples, line %1: ").arg(hottest)),
                 qPrintable(real.said()));
        real.press(Qt::Key_F7);
        QVERIFY(stays());
        QCOMPARE(edit->textCursor().blockNumber() + 1, cold);
        QVERIFY2(real.said().contains(QStringLiteral(": 0.0")), qPrintable(real.said()));
        real.press(Qt::Key_F7);
        QVERIFY2(real.said().contains(QStringLiteral("fewest samples")), qPrintable(real.said()));
        QCOMPARE(edit->textCursor().blockNumber() + 1, cold);
        real.press(Qt::Key_F7, Qt::ShiftModifier);
        QVERIFY(stays());
        QCOMPARE(edit->textCursor().blockNumber() + 1, hottest);
        // From elsewhere it is the diff that is walked through.
        real.focus("lineage");
        real.press(Qt::Key_F7);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("diff"));
        QVERIFY(real.hasFocus("lineage"));
    }

    /// Without samples it says so, and stays as well.
    void aDraftWithoutSamples()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        const CodeEdit *edit = panelOf<EditorPanel>(real, "editor")->edit();
        real.type(QStringLiteral("// first"));
        real.press(Qt::Key_Return);
        for (const auto modifier : {Qt::NoModifier, Qt::ShiftModifier}) {
            real.press(Qt::Key_F7, modifier);
            QVERIFY(edit->hasFocus());
            QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
            QVERIFY2(real.said().startsWith(QStringLiteral("K02 has no stall samples")),
                     qPrintable(real.said()));
        }
    }

    /// The fields of a card are edited beside the diff: it goes on, and the edit does not end where the step does.
    void theNextChangeBesideACard()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *card = panelOf<CardPanel>(real, "card");
        card->edit();
        auto *text = qobject_cast<QPlainTextEdit *>(QApplication::focusWidget());
        QVERIFY(text && card->isAncestorOf(text));
        const DiffView *diff = panelOf<DiffPanel>(real, "diff")->view();
        const QString row = real.row();
        const int change = diff->currentHunk();
        real.press(Qt::Key_F8);
        QCOMPARE(diff->currentHunk(), change + 1);
        QVERIFY(text->hasFocus());
        for (int i = 0; i < diff->hunkCount() + 2; ++i)
            real.press(Qt::Key_F8);
        QCOMPARE(real.row(), row);
        QVERIFY(card->isEditing() && text->hasFocus());
        QCOMPARE(diff->currentHunk(), diff->hunkCount() - 1);
    }

    /// What is taken back is seen: a layout without cards gets the panel, and the focus stays.
    void undoShowsTheCard()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.press(Qt::Key_4, ctrlAlt);
        QTRY_VERIFY(real.hasFocus("story"));
        auto *card = panelOf<CardPanel>(real, "card");
        const QString name = real.card();
        QVERIFY(!card->isVisible());
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        QVERIFY(real.record(name).standingReview());
        QVERIFY(!card->isVisible());
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        QVERIFY(!real.record(name).standingReview());
        QCOMPARE(real.card(), name);
        QTRY_VERIFY(card->isVisible() && !card->visibleRegion().isEmpty());
        QVERIFY(real.hasFocus("story"));
        // So does a pane that takes the whole window.
        real.press(Qt::Key_1, ctrlAlt);
        real.focus("lineage");
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        real.press(Qt::Key_F9);
        QVERIFY(card->visibleRegion().isEmpty());
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        QTRY_VERIFY(!card->visibleRegion().isEmpty());
    }

    /// A verdict moves its card to another section, and the walk goes on: undone, it is selected and its row is in view.
    void undoShowsTheRowOfTheCard()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {1366, 768});
        QVERIFY(real.ready);
        auto *library = panelOf<LibraryPanel>(real, "library");
        auto *list = library->findChild<QTreeView *>();
        library->chooseCard(library->neighbourCard({}, 1));
        real.focus("library");
        const QString first = real.card();
        for (int i = 0; i < 3; ++i) {
            real.press(Qt::Key_A);
            QVERIFY(real.written());
        }
        QVERIFY(real.card() != first);
        for (int i = 0; i < 3; ++i) {
            list->verticalScrollBar()->setValue(i % 2 == 0 ? list->verticalScrollBar()->maximum() : 0);
            real.press(Qt::Key_Z, Qt::ControlModifier);
            QVERIFY(real.written());
            QTRY_VERIFY(isCurrentSeen(list));
            QCOMPARE(currentKey(list), real.card());
            QVERIFY(!real.record(real.card()).standingReview());
        }
        QCOMPARE(real.card(), first);
        QVERIFY(real.hasFocus("library"));
        // Also where the filter had left it out.
        auto *filter = real.find<QLineEdit>("library", QStringLiteral("filterField"));
        filter->setText(QStringLiteral("verdict:none"));
        real.press(Qt::Key_A);
        QVERIFY(real.written() && real.card() != first);
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        QCOMPARE(real.card(), first);
        QTRY_VERIFY(isCurrentSeen(list));
        QCOMPARE(currentKey(list), first);
    }

    /// However a lineage is opened: its row in the library and the step's row in the lineage are in view.
    void whatIsOpenedIsInView_data()
    {
        QTest::addColumn<QString>("layout");
        QTest::addColumn<QSize>("size");
        QTest::newRow("review") << QString() << QSize(1366, 768);
        QTest::newRow("curate") << QStringLiteral("curate") << QSize(1366, 768);
        QTest::newRow("run") << QStringLiteral("run") << QSize(1366, 768);
        QTest::newRow("demo") << QStringLiteral("demo") << QSize(1366, 768);
        QTest::newRow("large") << QString() << QSize(1600, 1000);
    }

    void whatIsOpenedIsInView()
    {
        QFETCH(QString, layout);
        QFETCH(QSize, size);
        // From the command line.
        const RealWindow real(QStringLiteral("topk-sorted/sm90/K00"), size, layout);
        QVERIFY(real.ready);
        auto *library = panelOf<LibraryPanel>(real, "library");
        auto *list = library->findChild<QTreeView *>();
        const LineageView *rows = real.find<LineageView>("lineage");
        // Where cards come first the row is that of the step's card.
        const auto isSeen = [&] {
            return (currentKey(list) == real.selection()->lineageKey()
                    || (layout == QStringLiteral("curate") && currentKey(list) == real.selection()->card()))
                   && (isCurrentSeen(list) || !list->isVisible()) && isCurrentSeen(rows);
        };
        const auto where = [&] {
            const auto rowIn = [](const QAbstractItemView *view) {
                return QStringLiteral("%1 of %2")
                    .arg(view->visualRect(view->currentIndex()).bottom())
                    .arg(view->viewport()->height());
            };
            return QStringLiteral("%1, library %2 at %3, lineage at %4")
                .arg(real.selection()->lineageKey(), currentKey(list), rowIn(list), rowIn(rows));
        };
        QTRY_VERIFY2(isSeen(), qPrintable(where()));
        // By its name, also one that is open already and was scrolled away from.
        const auto goTo = [&](const QString &target) {
            real.press(Qt::Key_P, Qt::ControlModifier);
            real.type(target);
            real.press(Qt::Key_Return);
            QVERIFY(real.settle());
        };
        for (const char *target :
             {"fmha/sm90/K00", "addmm/sm90/K00", "softmax/pocl/K00", "gemm/sm90/K00", "topk/sm90/K00"}) {
            goTo(QLatin1String(target));
            QCOMPARE(real.selection()->lineageKey() + u'/' + real.row(), QLatin1String(target));
            QTRY_VERIFY2(isSeen(), qPrintable(where()));
        }
        list->verticalScrollBar()->setValue(0);
        goTo(QStringLiteral("topk/sm90/K00"));
        QTRY_VERIFY2(isSeen(), qPrintable(where()));
        // From the story: the last of lineages over each other.
        real.window->showStory(QStringLiteral("overlay"));
        QVERIFY(real.settle());
        real.focus("story");
        list->verticalScrollBar()->setValue(0);
        real.press(Qt::Key_End);
        real.press(Qt::Key_Return);
        QVERIFY(real.settle());
        QTRY_VERIFY2(isSeen(), qPrintable(where()));
        // By a command, while the list is on a card.
        library->chooseCard(library->neighbourCard({}, -1));
        real.selection()->setLineage(QStringLiteral("addmm/sm90"), QStringLiteral("K00"));
        QTRY_VERIFY2(isSeen(), qPrintable(where()));
        // Other layouts and fonts, and smaller windows, keep what is in view.
        for (const Qt::Key key : {Qt::Key_4, Qt::Key_2, Qt::Key_3, Qt::Key_1}) {
            goTo(key == Qt::Key_2 ? QStringLiteral("topk-sorted/sm90/K00") : QStringLiteral("gdn/sm90/K00"));
            real.press(key, ctrlAlt);
            QVERIFY(real.settle());
            QTRY_VERIFY2(isSeen(), qPrintable(where()));
        }
        real.window->resize(1280, 700);
        QTRY_VERIFY2(isSeen(), qPrintable(where()));
    }

    /// A link of a card shows its lineage, and the list stays on the card that is looked at.
    void aLinkKeepsTheCard()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {1366, 768});
        QVERIFY(real.ready);
        auto *library = panelOf<LibraryPanel>(real, "library");
        auto *list = library->findChild<QTreeView *>();
        library->chooseCard(library->neighbourCard({}, 1));
        const QString card = real.card();
        real.selection()->lookUp(QStringLiteral("topk-sorted/sm90"), QStringLiteral("K01"));
        QVERIFY(real.settle());
        QCOMPARE(currentKey(list), card);
        QTRY_VERIFY(isCurrentSeen(real.find<LineageView>("lineage")));
    }

    /// The strip says as much of the sentence as fits, and that there is more; all of it is its tool tip and its accessible text.
    void verdictsAreNotCut()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"), {1366, 768});
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        auto *editor = panelOf<EditorPanel>(real, "editor");
        QVERIFY(editor->edit()->hasFocus());
        auto *strip = editor->findChild<VerdictStrip *>();
        const auto *line = strip->findChild<QLabel *>(QStringLiteral("verdictLine"));
        const gate::Trial trial = longTrial();
        const QString sentence = QString::fromStdString(trial.verdict.message);
        const auto fits = [line] {
            const QRect room = line->contentsRect();
            const QRect needed = line->fontMetrics().boundingRect(
                QRect(0, 0, room.width(), 10000), line->wordWrap() ? Qt::TextWordWrap : 0, line->text());
            return needed.width() <= room.width() && needed.height() <= room.height() + 1;
        };
        strip->setTrial(trial);
        QTRY_VERIFY(fits());
        QVERIFY(line->text().endsWith(u'…'));
        QCOMPARE(line->toolTip(), sentence);
        QCOMPARE(line->accessibleName(), sentence);
        QVERIFY(strip->accessibleName().contains(sentence));
        // The rest unfolds with a key.
        auto *more = strip->findChild<QToolButton *>(QStringLiteral("verdictDetails"));
        QVERIFY(more->isVisible());
        more->setFocus();
        real.press(Qt::Key_Space);
        QVERIFY(strip->findChild<QPlainTextEdit *>()->toPlainText().contains(sentence));
        real.press(Qt::Key_Space);
        // What is no verdict is wrapped; a path that no line holds loses its middle.
        for (const QString &failure : {sentence, QStringLiteral("Cannot start /") + QString(400, u'a')
                                                     + QStringLiteral(": no such file")}) {
            strip->setFailure(failure);
            QTRY_VERIFY2(fits(), qPrintable(line->text()));
            QCOMPARE(line->accessibleName(), failure);
            QVERIFY(line->text() == failure || line->toolTip() == failure);
        }
        real.window->resize(1280, 700);
        strip->setTrial(trial);
        QTRY_VERIFY(fits());
        // So is the finding of the line below.
        editor->edit()->setFocus();
        editor->edit()->selectAll();
        real.press(Qt::Key_Delete);
        real.type(QStringLiteral("x"));
        const auto *check = editor->findChild<QLabel *>(QStringLiteral("planCheck"));
        QTRY_VERIFY(check->text().startsWith(u'✕'));
        QVERIFY(check->fontMetrics().horizontalAdvance(check->text()) <= check->contentsRect().width());
        QVERIFY(check->toolTip().startsWith(u'✕'));
        QCOMPARE(check->accessibleName(), check->toolTip());
    }

    /// --layout demo: the keys are those of the story from the beginning, as when the layout is chosen by hand.
    void theStoryHasTheKeysFromTheStart()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K08"), {1366, 768}, QStringLiteral("demo"));
        QVERIFY(real.ready);
        QTRY_VERIFY(real.hasFocus("story"));
        real.press(Qt::Key_Right);
        QCOMPARE(real.row(), "R08a");
        real.press(Qt::Key_2);
        QCOMPARE(panelOf<StoryPanel>(real, "story")->view(), StoryPanel::View::Graph);
        // Another layout begins where one goes from step to step.
        const RealWindow review;
        QVERIFY(review.ready && review.hasFocus("lineage"));
    }
};

KLINEAGE_UI_TEST(TestFocusJourney)
#include "tst_focusjourney.moc"
