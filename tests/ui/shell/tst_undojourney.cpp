// SPDX-License-Identifier: GPL-3.0-or-later
// Undo and redo in the real window: each step and each card has a history of its own.
#include "core/lineage/comments.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/diffpanel.h"
#include "ui/library/librarypanel.h"

#include <QAction>
#include <QLabel>
#include <QLineEdit>

using namespace klineage;
using namespace klineage::ui;

namespace {

QAction *command(const RealWindow &real, const char *id)
{
    return std::as_const(*real.window->actions()).find(QLatin1String(id))->action;
}

std::size_t comments(const RealWindow &real, const char *lineage)
{
    return lineage::threadsOf(real.window->workspace()->lineage(QLatin1String(lineage))->comments).size();
}

void undo(const RealWindow &real)
{
    real.press(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(real.written() && real.settle());
}

void redo(const RealWindow &real)
{
    real.press(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(real.written() && real.settle());
}

void comment(const RealWindow &real, const QString &text)
{
    real.focus("diff");
    real.press(Qt::Key_F8);
    real.press(Qt::Key_C);
    real.type(text);
    real.press(Qt::Key_Return);
    QVERIFY(real.written() && real.settle());
}

void goTo(const RealWindow &real, const char *lineage, const char *row)
{
    real.selection()->setLineage(QLatin1String(lineage), QLatin1String(row));
    QVERIFY(real.settle());
    real.focus("lineage");
}

} // namespace

class TestUndoJourney : public UiTest
{
    Q_OBJECT

private slots:
    void whatWasDoneElsewhereStays()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        const QString card = real.card();
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        comment(real, QStringLiteral("on gemm"));
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(1));
        // Another lineage, and another state of this one: nothing was done there.
        goTo(real, "softmax/sm90", "K06");
        QVERIFY(!command(real, "card.undo")->isEnabled());
        undo(real);
        goTo(real, "gemm/sm90", "K04");
        undo(real);
        QCOMPARE(real.row(), QStringLiteral("K04"));
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(1));
        QVERIFY(real.record(card).standingReview());
        // An edit here is what an undo here takes back, although it is not the only one.
        comment(real, QStringLiteral("on another state"));
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(2));
        goTo(real, "gemm/sm90", "K05");
        undo(real);
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(1)); // that of K05, said before
        QVERIFY(real.record(card).standingReview());
        undo(real);
        QVERIFY(!real.record(card).standingReview());
        QVERIFY(!command(real, "card.undo")->isEnabled());
        goTo(real, "gemm/sm90", "K04");
        undo(real);
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(0));
    }

    void whatWasUndoneIsDoneAgain()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        const QString card = real.card();
        const std::size_t before = real.record(card).reviews.size();
        QVERIFY(!command(real, "card.redo")->isEnabled());
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        comment(real, QStringLiteral("on the code"));
        undo(real);
        undo(real);
        QVERIFY(!real.record(card).standingReview());
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(0));
        redo(real); // what was undone last comes first
        QVERIFY(real.record(card).standingReview());
        QCOMPARE(real.record(card).standingReview()->verdict, skills::ReviewVerdict::Approve);
        redo(real);
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(1));
        QVERIFY(!command(real, "card.redo")->isEnabled());
        QCOMPARE(real.record(card).reviews.size(), before + 3); // nothing is erased
        // And undone once more.
        undo(real);
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(0));
        undo(real);
        QVERIFY(!real.record(card).standingReview());
        // Elsewhere there is nothing to redo; a new verdict here takes the place of what was undone.
        goTo(real, "softmax/sm90", "K06");
        QVERIFY(!command(real, "card.redo")->isEnabled());
        goTo(real, "gemm/sm90", "K05");
        QVERIFY(command(real, "card.redo")->isEnabled());
        real.press(Qt::Key_X);
        real.type(QStringLiteral("no"));
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        redo(real); // the comment: the code has its own history
        QCOMPARE(comments(real, "gemm/sm90"), std::size_t(1));
        redo(real);
        QCOMPARE(real.record(card).standingReview()->verdict, skills::ReviewVerdict::Reject);
    }

    /// A verdict that goes on to the next card by itself can be taken back from there, one after the other; who chooses a card has left.
    void aWalkThroughCardsIsOnePlace()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        const QString first = library->neighbourCard({}, 1);
        library->chooseCard(first);
        real.focus("library");
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        const QString second = real.card();
        QVERIFY(second != first);
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        undo(real);
        QCOMPARE(real.card(), second);
        QVERIFY(!real.record(second).standingReview());
        QVERIFY(real.record(first).standingReview());
        undo(real);
        QCOMPARE(real.card(), first);
        QVERIFY(!real.record(first).standingReview());
        redo(real);
        QVERIFY(real.record(first).standingReview());
        library->chooseCard(second); // a person goes elsewhere; what was judged may be the last card by now
        QCOMPARE(real.card(), second);
        undo(real);
        QVERIFY(real.record(first).standingReview());
    }

    void theQuestionIsALabelOfItsField()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        CardReviewer::setAuthor({});
        real.focus("lineage");
        real.press(Qt::Key_A);
        const auto *field = qobject_cast<QLineEdit *>(QApplication::focusWidget());
        QVERIFY(field);
        QVERIFY(field->accessibleName().contains(QStringLiteral("Your name")));
        const auto *label = real.find<QLabel>("card", QStringLiteral("question"));
        QVERIFY(label->isVisible());
        QCOMPARE(label->text(), field->accessibleName());
        QCOMPARE(label->buddy(), field);
        QCoreApplication::processEvents();
        QVERIFY(label->height() >= label->heightForWidth(label->width())); // whole, in a narrow panel too
        real.press(Qt::Key_Escape);
        QVERIFY(!label->isVisible());
        QVERIFY(real.hasFocus("lineage"));
        // Beside the code, too.
        real.focus("diff");
        real.press(Qt::Key_F8);
        real.press(Qt::Key_C);
        field = qobject_cast<QLineEdit *>(QApplication::focusWidget());
        QVERIFY(field && field->accessibleName().contains(QStringLiteral("Your name")));
        real.press(Qt::Key_Escape);
    }
};

KLINEAGE_UI_TEST(TestUndoJourney)
#include "tst_undojourney.moc"
