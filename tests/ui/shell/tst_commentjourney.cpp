// SPDX-License-Identifier: GPL-3.0-or-later
// Comments on the code of a step, from C on a line to the answer that resolves them: by keys and clicks in the real window.
#include "core/files/atomicfile.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/commentbar.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/viewed.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/keymodel.h"
#include "ui/style/theme.h"

#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QTabBar>
#include <QTextBrowser>

using namespace klineage;
using namespace klineage::ui;

namespace {

DiffPanel *diffOf(const RealWindow &real)
{
    return qobject_cast<DiffPanel *>(real.window->panel(QStringLiteral("diff")));
}

const lineage::Lineage &lineageOf(const RealWindow &real)
{
    return *real.window->workspace()->lineage(real.selection()->lineageKey());
}

std::vector<lineage::CommentThread> threads(const RealWindow &real)
{
    return lineage::threadsOf(lineageOf(real).comments);
}

/// Presses C, says something, and waits until it is on disk and read again.
void say(const RealWindow &real, const QString &words)
{
    real.press(Qt::Key_C);
    QVERIFY(real.hasFocus("diff"));
    QVERIFY(!diffOf(real)->commentBar()->question().isEmpty());
    real.type(words);
    real.press(Qt::Key_Return);
    QVERIFY(real.written());
    QVERIFY(real.settle());
}

void openHistory(const RealWindow &real)
{
    auto *tabs = real.find<QTabBar>("card");
    for (int i = 0; i < tabs->count(); ++i) {
        if (tabs->tabText(i) == QLatin1String("History"))
            tabs->setCurrentIndex(i);
    }
}

/// The nth link of the page, by keys: Tab goes from one to the next.
void followLink(const RealWindow &real, int number)
{
    auto *page = real.find<QTextBrowser>("card");
    page->setFocus();
    QTextCursor start = page->textCursor();
    start.movePosition(QTextCursor::Start);
    page->setTextCursor(start);
    for (int i = 0; i < number; ++i)
        real.press(Qt::Key_Tab);
    real.press(Qt::Key_Return);
}

/// Whether the sign of a comment is painted beside a row of the view.
bool isMarked(const DiffView &view, Side side, int line)
{
    const int row = view.rows().indexOf(view.rows().diffRowOf(side, line - 1), side);
    const ViewGeometry &geometry = view.geometryOfRows();
    const QImage image = view.viewport()->grab().toImage().convertToFormat(QImage::Format_RGB32);
    const int x = geometry.column(side).rect.left() + 1;
    const int y = geometry.topOf(row) - view.verticalScrollBar()->value() + geometry.rowHeight / 2;
    return image.rect().contains(x, y) && image.pixelColor(x, y) == Theme::current().accent;
}

} // namespace

class TestCommentJourney : public UiTest
{
    Q_OBJECT

private slots:
    void theKeyIsACommandOfTheDiff()
    {
        const MainWindow window;
        KeyModel keys(window.actions());
        for (const char *id : {"diff.comment", "diff.nextComment", "diff.previousComment"}) {
            const auto *entry = std::as_const(*window.actions()).find(QLatin1String(id));
            QVERIFY2(entry, id);
            QVERIFY(window.actions()->conflicts(QLatin1String(id), entry->action->shortcut()).isEmpty());
            QVERIFY(!keys.match(keys.index(0, 0), KeyModel::IdRole, QLatin1String(id), 1, Qt::MatchExactly)
                         .isEmpty());
        }
        QCOMPARE(std::as_const(*window.actions()).find(QStringLiteral("diff.comment"))->action->shortcut(),
                 QKeySequence(Qt::Key_C));
    }

    void aLineIsCommentedOnAndTakenBack()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const DiffPanel *diff = diffOf(real);
        real.focus("diff");
        real.press(Qt::Key_F8);
        const auto chosen = diff->view()->chosenLines();
        QVERIFY(chosen);
        say(real, QStringLiteral("why c, v and z?"));
        QVERIFY(real.hasFocus("diff")); // where one was
        QCOMPARE(threads(real).size(), std::size_t(1));
        const lineage::CommentEvent comment = threads(real).front().comment;
        QCOMPARE(comment.author, std::string("Grace Hopper"));
        QCOMPARE(comment.text, std::string("why c, v and z?"));
        QCOMPARE(comment.place.from, std::string("K04"));
        QCOMPARE(comment.place.to, std::string("K05"));
        QCOMPARE(comment.place.firstLine, chosen->first + 1);
        QCOMPARE(comment.place.lastLine, chosen->last + 1);
        const Side side = comment.place.side == lineage::StepSide::Before ? Side::Left : Side::Right;
        QCOMPARE(diff->comments()->side(side).size(), std::size_t(1));
        QVERIFY(isMarked(*diff->view(), side, comment.place.firstLine));
        QVERIFY(diff->view()
                    ->commentsOfRow(diff->view()->currentRow(), side)
                    .contains(QStringLiteral("Grace Hopper")));
        // Assistive technology and the tool tip say it too.
        real.press(Qt::Key_J);
        real.press(Qt::Key_K);
        QVERIFY(diff->view()->accessibleDescription().contains(QStringLiteral("why c, v and z?")));
        const ViewGeometry &geometry = diff->view()->geometryOfRows();
        const QPoint at(geometry.column(side).rect.left() + 3,
                        geometry.topOf(diff->view()->currentRow())
                            - diff->view()->verticalScrollBar()->value() + 3);
        QVERIFY(diff->view()->toolTipAt(at).contains(QStringLiteral("why c, v and z?")));

        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written() && real.settle());
        QVERIFY(threads(real).empty());
        QCOMPARE(lineageOf(real).comments.size(), std::size_t(2)); // nothing is erased
        QVERIFY(!diff->comments() || diff->comments()->count() == 0);
    }

    /// The same key says something about the card where the card is meant.
    void elsewhereTheKeyIsTheCards()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_C);
        QVERIFY(real.hasFocus("card"));
        real.press(Qt::Key_Escape);
        // Undo goes through both in the order in which they were said.
        real.press(Qt::Key_C);
        real.type(QStringLiteral("of the card"));
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        real.focus("diff");
        real.press(Qt::Key_F8);
        say(real, QStringLiteral("of the code"));
        // What is taken back is looked at, wherever one has gone meanwhile.
        real.window->centre()->showPage(QStringLiteral("compare"));
        real.focus("lineage");
        const QString card = real.card();
        const std::size_t reviews = real.record(card).reviews.size();
        QCOMPARE(real.record(card).reviews.back().reason, std::string("of the card"));
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        QVERIFY(threads(real).empty());
        QCOMPARE(real.window->centre()->page(), QStringLiteral("diff"));
        QCOMPARE(real.record(card).reviews.size(), reviews);
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        QCOMPARE(real.record(card).reviews.size(), reviews + 1);
    }

    void rangesOfEitherSide()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        DiffView *view = diffOf(real)->view();
        real.focus("diff");
        // Three lines of the older text: a click in its gutter, then Shift with a click two lines below.
        view->goToHunk(0);
        const auto isThree = [&](int row) {
            for (int i = row; i < row + 3; ++i) {
                const ViewRow &at = view->rows().at(i);
                const diff::Row &both = view->document()->diff.rows[std::size_t(at.row)];
                if (at.kind == ViewRow::Kind::Fold || both.leftLine < 0 || both.rightLine < 0)
                    return false;
            }
            return true;
        };
        int row = view->currentRow();
        while (row > 0 && !isThree(row))
            --row;
        QVERIFY(isThree(row));
        const ViewGeometry &geometry = view->geometryOfRows();
        const auto gutterOf = [&](int at) {
            return QPoint(geometry.column(Side::Left).numberRight,
                          geometry.topOf(at) - view->verticalScrollBar()->value() + 4);
        };
        const int first =
            lineOf(view->document()->diff.rows[std::size_t(view->rows().at(row).row)], Side::Left);
        QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, gutterOf(row));
        QTest::mouseClick(view->viewport(), Qt::LeftButton, Qt::ShiftModifier, gutterOf(row + 2));
        say(real, QStringLiteral("three lines of K04"));
        const lineage::CommentPlace older = threads(real).front().comment.place;
        QCOMPARE(older.side, lineage::StepSide::Before);
        QCOMPARE(older.firstLine, first + 1);
        QCOMPARE(older.lastLine, first + 3);
        QVERIFY(isMarked(*view, Side::Left, older.firstLine));
        // The newer text, by keys.
        QTest::mouseClick(view->viewport(), Qt::LeftButton, {},
                          {geometry.column(Side::Right).textLeft + 20, gutterOf(row).y()});
        real.press(Qt::Key_Down, Qt::ShiftModifier);
        real.press(Qt::Key_Down, Qt::ShiftModifier);
        say(real, QStringLiteral("two lines of K05"));
        const lineage::CommentPlace newer = threads(real).back().comment.place;
        QCOMPARE(newer.side, lineage::StepSide::After);
        QVERIFY(newer.lastLine > newer.firstLine);
        // Alt+C goes from one to the other, round and round.
        real.press(Qt::Key_C, Qt::AltModifier);
        QCOMPARE(view->markedLine(), std::optional(SideLine{Side::Left, older.firstLine - 1}));
        real.press(Qt::Key_C, Qt::AltModifier);
        QCOMPARE(view->markedLine(), std::optional(SideLine{Side::Right, newer.firstLine - 1}));
        real.press(Qt::Key_C, Qt::AltModifier | Qt::ShiftModifier);
        QCOMPARE(view->markedLine(), std::optional(SideLine{Side::Left, older.firstLine - 1}));
        // A comment belongs to its step alone.
        real.press(Qt::Key_Left, Qt::ControlModifier);
        QVERIFY(real.settle());
        QVERIFY(real.row() != QLatin1String("K05"));
        QVERIFY(!diffOf(real)->comments() || diffOf(real)->comments()->count() == 0);
    }

    void theNameIsAskedOnce()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        CardReviewer::setAuthor({});
        real.focus("diff");
        real.press(Qt::Key_F8);
        real.press(Qt::Key_C);
        QVERIFY(diffOf(real)->commentBar()->question().contains(QStringLiteral("Your name")));
        real.press(Qt::Key_A, Qt::ControlModifier);
        real.type(QStringLiteral("Ada Lovelace"));
        real.press(Qt::Key_Return);
        real.type(QStringLiteral("by whom?"));
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        QCOMPARE(threads(real).front().comment.author, std::string("Ada Lovelace"));
        say(real, QStringLiteral("by me"));
        QCOMPARE(threads(real).back().comment.author, std::string("Ada Lovelace"));
    }

    void theHistoryListsAnswersAndLeadsToTheLines()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("diff");
        real.press(Qt::Key_F8);
        say(real, QStringLiteral("is <b>this</b> needed?"));
        const lineage::CommentPlace place = threads(real).front().comment.place;
        openHistory(real);
        auto *page = real.find<QTextBrowser>("card");
        QVERIFY(page->toPlainText().contains(QStringLiteral("On the code of K04 → K05")));
        QVERIFY(page->toPlainText().contains(QStringLiteral("is <b>this</b> needed?"))); // as it was typed
        // Its lines, from elsewhere.
        diffOf(real)->setTab(DiffTab::Plan);
        followLink(real, 1);
        QVERIFY(real.settle());
        QTRY_VERIFY(diffOf(real)->view()->markedLine());
        QCOMPARE(diffOf(real)->tab(), DiffTab::Source);
        QCOMPARE(diffOf(real)->view()->markedLine()->line, place.firstLine - 1);
        QVERIFY(real.hasFocus("diff"));
        // A reply, and resolving.
        followLink(real, 2);
        real.type(QStringLiteral("Yes: see R04a."));
        real.press(Qt::Key_Return);
        QVERIFY(real.written() && real.settle());
        QCOMPARE(threads(real).front().replies.size(), std::size_t(1));
        QTRY_VERIFY(page->toPlainText().contains(QStringLiteral("Yes: see R04a.")));
        followLink(real, 3);
        QVERIFY(real.written() && real.settle());
        QVERIFY(threads(real).front().isResolved);
        QTRY_VERIFY(page->toPlainText().contains(QStringLiteral("resolved by Grace Hopper")));
        const Side side = place.side == lineage::StepSide::Before ? Side::Left : Side::Right;
        QVERIFY(!isMarked(*diffOf(real)->view(), side, place.firstLine)); // in a quieter colour
        QVERIFY(diffOf(real)->comments()->side(side).front().isResolved);
        followLink(real, 3);
        QVERIFY(real.written() && real.settle());
        QVERIFY(!threads(real).front().isResolved);
    }

    /// A step without a card lists them too.
    void stepsWithoutACard()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K00"));
        QVERIFY(real.ready);
        real.focus("diff");
        real.press(Qt::Key_J);
        say(real, QStringLiteral("the beginning"));
        const lineage::CommentPlace place = threads(real).front().comment.place;
        QVERIFY(place.from.empty());
        QCOMPARE(place.to, std::string("K00"));
        const auto *label = real.find<QLabel>("card", QStringLiteral("noCard"));
        QTRY_VERIFY(label->text().contains(QStringLiteral("the beginning")));
        emit const_cast<QLabel *>(label)->linkActivated(
            QStringLiteral("comment:%1").arg(QString::fromStdString(threads(real).front().comment.id)));
        QTRY_VERIFY(diffOf(real)->view()->markedLine());
    }

    void codeThatChangesIsFoundOrSaid()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K00"));
        QVERIFY(real.ready);
        real.focus("diff");
        const DiffView *view = diffOf(real)->view();
        const TextLines &lines = view->document()->side(Side::Right).text;
        const auto isAlone = [&](std::string_view line) { // and says something
            return line.size() > 12 && lines.bytes().find(line) == lines.bytes().rfind(line);
        };
        do
            real.press(Qt::Key_J);
        while (!isAlone(lines.line(view->chosenLines()->first)));
        say(real, QStringLiteral("on this line"));
        const lineage::CommentPlace place = threads(real).front().comment.place;
        const std::filesystem::path file = lineageOf(real).directory / lineageOf(real).states[0].file;
        const std::string text = files::readFile(file, 1 << 20).value();
        const auto write = [&](const std::string &now) {
            QVERIFY(files::writeFileAtomic(file, now));
            bool read = false;
            real.window->workspace()->readChanges([&read] { read = true; });
            QTRY_VERIFY(read);
            QVERIFY(real.settle());
        };
        write("// one more\n" + text);
        QTRY_VERIFY(diffOf(real)->comments() && diffOf(real)->comments()->count() == 1);
        QCOMPARE(diffOf(real)->comments()->side(Side::Right).front().lines.first, place.firstLine + 1);
        QVERIFY(!diffOf(real)->comments()->side(Side::Right).front().isChanged);
        std::string changed = text;
        changed.replace(changed.find(place.excerpt), place.excerpt.size(), "int somethingElse;");
        write(changed);
        QTRY_VERIFY(diffOf(real)->comments() && diffOf(real)->comments()->count() == 1
                    && diffOf(real)->comments()->side(Side::Right).front().isChanged);
        QVERIFY(diffOf(real)
                    ->comments()
                    ->side(Side::Right)
                    .front()
                    .words.contains(QStringLiteral("Its text has changed since")));
    }

    void whatCannotBeCommentedOnSaysSo()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        DiffPanel *diff = diffOf(real);
        diff->setTab(DiffTab::Plan);
        QVERIFY(real.settle());
        real.focus("diff");
        QString said;
        connect(diff, &DiffPanel::message, this, [&said](const QString &text) { said = text; });
        real.press(Qt::Key_C);
        QVERIFY(said.contains(QStringLiteral("Source")));
        QVERIFY(diff->commentBar()->question().isEmpty());
        diff->setTab(DiffTab::Source);
        QVERIFY(real.settle());
        // Esc leaves it, and nothing is kept; nothing either when one goes on to another step.
        real.press(Qt::Key_F8);
        real.press(Qt::Key_C);
        real.type(QStringLiteral("never mind"));
        real.press(Qt::Key_Escape);
        QVERIFY(real.hasFocus("diff"));
        real.press(Qt::Key_C);
        real.type(QStringLiteral("never mind"));
        real.selection()->setRow(QStringLiteral("K03"));
        QVERIFY(real.settle());
        QVERIFY(diff->commentBar()->question().isEmpty());
        QVERIFY(lineageOf(real).comments.empty());
    }

    /// A folder that cannot be written: said, and nothing is lost of what stands.
    void aLogThatCannotBeWrittenIsSaid()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        std::filesystem::create_directory(lineageOf(real).directory / "comments.jsonl");
        QString problem;
        connect(real.window->reviewer(), &CardReviewer::failed, this,
                [&problem](const QString &, const QString &text) { problem = text; });
        real.focus("diff");
        real.press(Qt::Key_F8);
        real.press(Qt::Key_C);
        real.type(QStringLiteral("to nowhere"));
        real.press(Qt::Key_Return);
        QTRY_VERIFY(problem.contains(QStringLiteral("comments.jsonl")));
        QVERIFY(real.written());
    }

    /// V in the diff marks the step, as it marks a card in the library.
    void aStepIsViewed()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const auto row = lineage::findRow(lineageOf(real), "K05");
        const QString key = Viewed::stepKey(QStringLiteral("gemm/sm90"), QStringLiteral("K05"),
                                            QString::fromStdString(row->trial->id));
        QVERIFY(!real.window->viewed()->contains(key));
        real.focus("diff");
        real.press(Qt::Key_V);
        QVERIFY(real.window->viewed()->contains(key));
        QVERIFY(real.row() != QLatin1String("K05"));
    }
};

KLINEAGE_UI_TEST(TestCommentJourney)
#include "tst_commentjourney.moc"
