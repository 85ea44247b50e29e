// SPDX-License-Identifier: GPL-3.0-or-later
// Comments on code: the diff asks for them, the reviewer writes them, the card's history lists them. The panels alone, by keys.
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "ui/cards/cardpanel.h"
#include "ui/cards/cardreviewer.h"
#include "ui/diff/commentbar.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBrowser>

#include <filesystem>

using namespace klineage;
using namespace klineage::ui;

class TestCodeComments : public UiTest
{
    Q_OBJECT

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<WorkspaceModel> m_workspace;
    std::unique_ptr<Selection> m_selection;
    std::unique_ptr<CardReviewer> m_reviewer;
    std::unique_ptr<QWidget> m_window;
    DiffPanel *m_diff = nullptr;
    CardPanel *m_card = nullptr;

    [[nodiscard]] std::vector<lineage::CommentThread> threads() const
    {
        return lineage::threadsOf(m_workspace->lineage(m_selection->lineageKey())->comments);
    }
    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) const
    {
        QTest::keyClick(QApplication::focusWidget(), key, modifiers);
    }
    [[nodiscard]] bool written() const
    {
        return QTest::qWaitFor([this] { return !m_reviewer->isBusy() && m_diff->isUpToDate(); }, patienceMs);
    }
    void say(const QString &words)
    {
        press(Qt::Key_C);
        QVERIFY(!m_diff->commentBar()->question().isEmpty());
        QTest::keyClicks(QApplication::focusWidget(), words);
        press(Qt::Key_Return);
        QVERIFY(written());
    }
    void openHistory() const
    {
        auto *tabs = m_card->findChild<QTabBar *>();
        tabs->setCurrentIndex(tabs->count() - 1);
        QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("History"));
    }
    void followLink(int number) const
    {
        auto *page = m_card->findChild<QTextBrowser *>();
        page->setFocus();
        page->moveCursor(QTextCursor::Start);
        for (int i = 0; i < number; ++i)
            press(Qt::Key_Tab);
        press(Qt::Key_Return);
    }

private slots:
    void init()
    {
        CardReviewer::setAuthor(QStringLiteral("Grace Hopper"));
        m_folder = std::make_unique<QTemporaryDir>();
        const std::filesystem::path root = m_folder->path().toStdString();
        const std::filesystem::path source = klineage::test::sourcePath();
        for (const char *parent : {"workloads", "skills"})
            std::filesystem::create_directories(root / parent);
        for (const char *part : {"workloads/softmax", "skills/row-in-registers"})
            std::filesystem::copy(source / part, root / part, std::filesystem::copy_options::recursive);
        m_workspace = std::make_unique<WorkspaceModel>();
        m_selection = std::make_unique<Selection>();
        m_workspace->openNow(m_folder->path());
        m_reviewer = std::make_unique<CardReviewer>(m_workspace.get());
        m_window = std::make_unique<QWidget>();
        m_diff = new DiffPanel(m_workspace.get(), m_selection.get());
        m_card = new CardPanel(m_workspace.get(), m_selection.get(), m_reviewer.get());
        auto *row = new QHBoxLayout(m_window.get());
        row->addWidget(m_diff, 3);
        row->addWidget(m_card, 1);
        connect(m_diff, &DiffPanel::commentGiven, m_reviewer.get(), &CardReviewer::comment);
        connect(m_card, &CardPanel::commentWanted, m_diff, &DiffPanel::showComment);
        m_window->resize(1400, 800);
        m_window->show();
        QVERIFY(takeKeys(*m_window));
        m_selection->setLineage(QStringLiteral("softmax/pocl"), QStringLiteral("K02"));
        m_selection->setCard(QStringLiteral("row-in-registers"));
        QVERIFY(QTest::qWaitFor([this] { return m_diff->isUpToDate(); }, patienceMs));
        m_diff->setFocus();
        m_diff->goToNextHunk();
    }

    void cleanup()
    {
        m_window.reset();
        m_reviewer.reset();
    }

    void whatIsSaidIsKeptAndListed()
    {
        const auto chosen = m_diff->view()->chosenLines();
        QVERIFY(chosen);
        say(QStringLiteral("is <b>this</b> needed?"));
        QVERIFY(m_diff->view()->hasFocus());
        QCOMPARE(threads().size(), std::size_t(1));
        const lineage::CommentPlace place = threads().front().comment.place;
        QCOMPARE(place.firstLine, chosen->first + 1);
        QCOMPARE(place.from, std::string("K01"));
        QCOMPARE(place.to, std::string("K02"));
        const Side side = place.side == lineage::StepSide::Before ? Side::Left : Side::Right;
        QVERIFY(m_diff->comments() && m_diff->comments()->side(side).size() == 1);

        openHistory();
        const auto *page = m_card->findChild<QTextBrowser *>();
        QVERIFY(page->toPlainText().contains(QStringLiteral("is <b>this</b> needed?")));
        followLink(1);
        QCOMPARE(m_diff->view()->markedLine(), std::optional(SideLine{side, place.firstLine - 1}));
        followLink(2);
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("Yes."));
        press(Qt::Key_Return);
        QVERIFY(written());
        QCOMPARE(threads().front().replies.size(), std::size_t(1));
        followLink(3);
        QVERIFY(written());
        QVERIFY(threads().front().isResolved);
        QTRY_VERIFY(page->toPlainText().contains(QStringLiteral("resolved by Grace Hopper")));
        // Taken back one by one, and none is erased.
        const CardReviewer::Place here{{}, QStringLiteral("softmax/pocl"), QStringLiteral("K02")};
        for (int left = 3; left > 0; --left) {
            QVERIFY(m_reviewer->canUndo(here));
            m_reviewer->undo(here);
            QVERIFY(written());
        }
        QVERIFY(threads().empty());
        QCOMPARE(m_workspace->lineage(QStringLiteral("softmax/pocl"))->comments.size(), std::size_t(6));
        QVERIFY(!m_reviewer->canUndo(here));
    }

    void theNameIsAskedOnce()
    {
        CardReviewer::setAuthor({});
        press(Qt::Key_C);
        QVERIFY(m_diff->commentBar()->question().contains(QStringLiteral("Your name")));
        press(Qt::Key_A, Qt::ControlModifier);
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("Ada Lovelace"));
        press(Qt::Key_Return);
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("by whom?"));
        press(Qt::Key_Return);
        QVERIFY(written());
        QCOMPARE(threads().front().comment.author, std::string("Ada Lovelace"));
    }

    void escapeKeepsNothing()
    {
        press(Qt::Key_C);
        QTest::keyClicks(QApplication::focusWidget(), QStringLiteral("never mind"));
        press(Qt::Key_Escape);
        QVERIFY(m_diff->view()->hasFocus());
        QVERIFY(m_diff->commentBar()->question().isEmpty());
        QVERIFY(threads().empty());
    }
};

KLINEAGE_UI_TEST(TestCodeComments)
#include "tst_codecomments.moc"
