// SPDX-License-Identifier: GPL-3.0-or-later
// Finding and going to a line, in the editor and in the diff of the real window.
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/editor/codeedit.h"
#include "ui/editor/editorpanel.h"
#include "ui/highlight/findbar.h"
#include "ui/shell/centre.h"

#include <QInputDialog>
#include <QLabel>
#include <QSpinBox>
#include <QTextBlock>

using namespace klineage;
using namespace klineage::ui;

namespace {

/// A draft of a text that is known.
CodeEdit *openDraft(const RealWindow &real)
{
    auto *panel = qobject_cast<EditorPanel *>(real.window->panel(QStringLiteral("editor")));
    real.window->centre()->showPage(QStringLiteral("editor"));
    if (!panel->openSelected())
        return nullptr;
    CodeEdit *edit = panel->edit();
    edit->selectAll();
    edit->insertPlainText(QStringLiteral("int tile = 4;\nint Tile = 5;\nfloat x;\nfor (;;) tile += x;\n"));
    edit->moveCursor(QTextCursor::Start);
    edit->setFocus();
    return edit;
}

QString countOf(const RealWindow &real, const char *panel)
{
    return real.find<QLabel>(panel, QStringLiteral("findCount"))->text();
}

/// Line and column of the selection, and its text.
QString selected(const CodeEdit &edit)
{
    const QTextCursor cursor = edit.textCursor();
    const QTextBlock block = edit.document()->findBlock(cursor.selectionStart());
    return QStringLiteral("%1:%2 %3")
        .arg(block.blockNumber() + 1)
        .arg(cursor.selectionStart() - block.position() + 1)
        .arg(cursor.selectedText());
}

} // namespace

class TestFindJourney : public UiTest
{
    Q_OBJECT

private slots:
    void theEditorFindsAsOneTypes()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const CodeEdit *edit = openDraft(real);
        QVERIFY(edit && edit->hasFocus());
        const auto *bar = real.find<FindBar>("editor");
        QVERIFY(!bar->isVisible());
        real.press(Qt::Key_F, Qt::ControlModifier);
        QVERIFY(bar->isVisible() && !edit->hasFocus());
        real.type(QStringLiteral("ti"));
        QCOMPARE(selected(*edit), QStringLiteral("1:5 ti"));
        real.type(QStringLiteral("le"));
        QCOMPARE(selected(*edit), QStringLiteral("1:5 tile"));
        QCOMPARE(countOf(real, "editor"), QStringLiteral("1 of 3")); // small letters find both
        QCOMPARE(edit->matches().size(), std::size_t(3));
        // On, and round.
        real.press(Qt::Key_Return);
        QCOMPARE(selected(*edit), QStringLiteral("2:5 Tile"));
        real.press(Qt::Key_F3);
        QCOMPARE(selected(*edit), QStringLiteral("4:10 tile"));
        QCOMPARE(countOf(real, "editor"), QStringLiteral("3 of 3"));
        real.press(Qt::Key_F3);
        QCOMPARE(selected(*edit), QStringLiteral("1:5 tile"));
        real.press(Qt::Key_F3, Qt::ShiftModifier);
        QCOMPARE(selected(*edit), QStringLiteral("4:10 tile"));
        real.press(Qt::Key_Return, Qt::ShiftModifier);
        QCOMPARE(selected(*edit), QStringLiteral("2:5 Tile"));
        // A capital counts.
        real.press(Qt::Key_A, Qt::ControlModifier);
        real.type(QStringLiteral("Tile"));
        QCOMPARE(countOf(real, "editor"), QStringLiteral("1 of 1"));
        real.type(QStringLiteral("s"));
        QCOMPARE(countOf(real, "editor"), QStringLiteral("No match"));
        QVERIFY(edit->matches().empty());
        real.press(Qt::Key_Escape);
        QVERIFY(!bar->isVisible() && edit->hasFocus());
    }

    void theSearchIsKeptAndFollowsTheText()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        CodeEdit *edit = openDraft(real);
        QVERIFY(edit);
        const auto *bar = real.find<FindBar>("editor");
        real.press(Qt::Key_F3); // nothing was searched for yet: asks
        QVERIFY(bar->isVisible());
        real.type(QStringLiteral("tile"));
        edit->setFocus();
        edit->moveCursor(QTextCursor::End);
        real.type(QStringLiteral("tile"));
        QCOMPARE(edit->matches().size(), std::size_t(4));
        QCOMPARE(countOf(real, "editor"), QStringLiteral("4 in all"));
        real.press(Qt::Key_Escape); // also from the text
        QVERIFY(!bar->isVisible() && edit->hasFocus());
        QVERIFY(edit->matches().empty());
        real.press(Qt::Key_Home, Qt::ControlModifier);
        real.press(Qt::Key_F3); // the last one again, without the line
        QCOMPARE(selected(*edit), QStringLiteral("1:5 tile"));
        QVERIFY(!bar->isVisible());
        // What is selected is searched for.
        real.press(Qt::Key_Down);
        real.press(Qt::Key_Down);
        real.press(Qt::Key_Home);
        real.press(Qt::Key_End, Qt::ShiftModifier);
        real.press(Qt::Key_F, Qt::ControlModifier);
        QCOMPARE(bar->text(), QStringLiteral("float x;"));
        edit->selectAll();
        edit->textCursor().removeSelectedText(); // while it is marked
        QVERIFY(edit->matches().empty());
        QCOMPARE(countOf(real, "editor"), QStringLiteral("No match"));
    }

    void theEditorGoesToALine()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const CodeEdit *edit = openDraft(real);
        QVERIFY(edit);
        bool asked = false;
        withNextModal<QInputDialog>(this, [&asked](QInputDialog &dialog) {
            asked = true;
            auto *line = dialog.findChild<QSpinBox *>();
            QCOMPARE(line->maximum(), 5);
            line->selectAll();
            QTest::keyClicks(line, QStringLiteral("3"));
            QTest::keyClick(line, Qt::Key_Return);
        });
        real.press(Qt::Key_G, Qt::ControlModifier);
        QTRY_VERIFY(asked && !QApplication::activeModalWidget());
        QCOMPARE(edit->textCursor().blockNumber(), 2);
        QVERIFY(takeKeys(*real.window));
        QTRY_VERIFY(edit->hasFocus());
    }

    void theDiffFindsAndGoesToALine()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const DiffView *view = qobject_cast<DiffPanel *>(real.window->panel(QStringLiteral("diff")))->view();
        const auto *bar = real.find<FindBar>("diff");
        real.focus("diff");
        real.press(Qt::Key_F, Qt::ControlModifier);
        real.type(QStringLiteral("__global__"));
        QTRY_VERIFY(!view->matches().matches.empty());
        const int count = static_cast<int>(view->matches().matches.size());
        QCOMPARE(countOf(real, "diff"), QStringLiteral("1 of %1").arg(count));
        real.press(Qt::Key_F3, Qt::ShiftModifier); // round
        QCOMPARE(view->currentMatch(), count - 1);
        real.focus("diff");
        real.press(Qt::Key_Escape);
        QVERIFY(!bar->isVisible() && view->matches().matches.empty());
        real.press(Qt::Key_F3);
        QVERIFY(bar->isVisible());
        QTRY_COMPARE(static_cast<int>(view->matches().matches.size()), count);
        real.press(Qt::Key_Escape);

        bool asked = false;
        withNextModal<QInputDialog>(this, [&asked](QInputDialog &dialog) {
            asked = true;
            auto *line = dialog.findChild<QSpinBox *>();
            line->selectAll();
            QTest::keyClicks(line, QStringLiteral("20"));
            QTest::keyClick(line, Qt::Key_Return);
        });
        real.press(Qt::Key_G, Qt::ControlModifier);
        QTRY_VERIFY(asked && !QApplication::activeModalWidget());
        QVERIFY(view->chosenLines());
        QCOMPARE(view->chosenLines()->first, 19);
    }
};

KLINEAGE_UI_TEST(TestFindJourney)
#include "tst_findjourney.moc"
