// SPDX-License-Identifier: GPL-3.0-or-later
// Reviewing many cards from the library, with keys only.
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/library/facetbar.h"
#include "ui/library/librarypanel.h"
#include "ui/models/libraryfilter.h"
#include "ui/models/librarymodel.h"
#include "ui/shell/devicemonitor.h"

#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QScrollBar>
#include <QTabBar>
#include <QToolButton>
#include <QTreeView>

#include <algorithm>

using namespace klineage;
using namespace klineage::ui;

namespace {

int cardsShown(const QTreeView &tree)
{
    int cards = 0;
    for (QModelIndex index = tree.model()->index(0, 0); index.isValid(); index = tree.indexBelow(index))
        cards += LibraryModel::kindOf(index) == LibraryModel::Kind::Card ? 1 : 0;
    return cards;
}

} // namespace

class TestTriageJourney : public UiTest
{
    Q_OBJECT

private slots:
    /// Who curates sees cards without scrolling, and the title's number leads to the first that waits.
    void curateBeginsWithTheCards()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {1366, 768}, QStringLiteral("curate"));
        QVERIFY(real.ready);
        auto *tree = real.find<QTreeView>("library");
        const auto section = [tree] {
            return tree->model()->index(0, 0).data(LibraryModel::KeyRole).toString();
        };
        QCOMPARE(section(), QStringLiteral("to-review"));
        // The row that follows the selection is the card's, and in sight.
        QCOMPARE(tree->currentIndex().data(LibraryModel::KeyRole).toString(), real.card());
        QVERIFY(tree->viewport()->rect().contains(tree->visualRect(tree->currentIndex()).center()));
        real.selection()->setRow(QStringLiteral("K08"));
        QVERIFY(real.settle());
        QCOMPARE(tree->currentIndex().data(LibraryModel::KeyRole).toString(), real.card());
        // Who is on a lineage's row stays there.
        tree->setFocus();
        const auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        const QModelIndex lineage = library->filter()->mapFromSource(
            library->model()->find(LibraryModel::Kind::Lineage, QStringLiteral("softmax/sm90")));
        tree->setCurrentIndex(lineage);
        QVERIFY(real.settle());
        QCOMPARE(real.selection()->lineageKey(), QStringLiteral("softmax/sm90"));
        QCOMPARE(tree->currentIndex().data(LibraryModel::KeyRole).toString(), QStringLiteral("softmax/sm90"));

        real.window->applyLayout(QStringLiteral("review"));
        QVERIFY(real.settle());
        QCOMPARE(section(), QStringLiteral("workloads"));
        QCOMPARE(tree->currentIndex().data(LibraryModel::KeyRole).toString(), QStringLiteral("softmax/sm90"));
    }

    void theNumberToReviewOpensTheFirst()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *link = real.window->findChild<QToolButton *>(QStringLiteral("titleBarSubtitle"));
        QVERIFY(link && link->isVisible());
        QCOMPARE(link->text(), real.window->panel(QStringLiteral("library"))->windowTitle());
        auto *field = real.find<QLineEdit>("library", QStringLiteral("filterField"));
        field->setText(QStringLiteral("qqzzxx"));
        QTest::mouseClick(link, Qt::LeftButton);
        QVERIFY(real.settle());
        QCOMPARE(field->text(), QString());
        const auto *tree = real.find<QTreeView>("library");
        const QModelIndex current = tree->currentIndex();
        QCOMPARE(current.parent().data(LibraryModel::KeyRole).toString(), QStringLiteral("to-review"));
        QCOMPARE(current.row(), 0);
        QCOMPARE(real.card(), current.data(LibraryModel::KeyRole).toString());
        QVERIFY(tree->viewport()->rect().contains(tree->visualRect(current).center()));
        QVERIFY(real.hasFocus("library"));
    }

    /// The bar of the inbox: 28 cards with verdicts, keyboard only, in at most 90 keys with all that leads there.
    void twentyEightCardsAreReviewedWithinNinetyKeys()
    {
        constexpr int wanted = 28;
        const RealWindow real;
        QVERIFY(real.ready);
        const auto *tree = real.find<QTreeView>("library");
        real.focus("lineage");
        real.press(Qt::Key_Slash);
        real.type(QStringLiteral("verdict:none"));
        const int waiting = cardsShown(*tree);
        QVERIFY(waiting >= wanted);
        real.press(Qt::Key_Return);
        QVERIFY(real.hasFocus("library"));
        for (int i = 0; i < wanted; ++i) {
            const QString card = real.card();
            QVERIFY2(!real.record(card).standingReview(), qPrintable(card));
            if (i % 7 == 3) {
                real.press(Qt::Key_X);
                real.type(QStringLiteral("no"));
                real.press(Qt::Key_Return);
            } else {
                real.press(Qt::Key_A);
            }
            QVERIFY(real.hasFocus("library"));
            QVERIFY(real.written());
            QVERIFY2(real.record(card).standingReview(), qPrintable(card));
            QVERIFY2(real.card() != card, qPrintable(card));
            // The next card is the current row, and it can be seen.
            QCOMPARE(tree->currentIndex().data(LibraryModel::KeyRole).toString(), real.card());
            QVERIFY(tree->viewport()->rect().contains(tree->visualRect(tree->currentIndex()).center()));
        }
        QVERIFY2(real.keys <= 90, qPrintable(QString::number(real.keys)));
        int judged = 0;
        for (const skills::CardRecord &record : real.window->workspace()->workspace().cards)
            judged += record.standingReview() ? 1 : 0;
        QCOMPARE(judged, wanted);
        QTRY_COMPARE(cardsShown(*tree), waiting - wanted); // what was judged has left the inbox
    }

    /// As the status bar's devices say, which the gate reports.
    void lineagesThatRunHereAreMarked()
    {
        const RealWindow real(QStringLiteral("softmax/pocl/K02"));
        QVERIFY(real.ready);
        const auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        QVERIFY(QTest::qWaitFor([&real] { return real.window->devices()->hasAnswer(); }, patienceMs));
        int marked = 0;
        for (const lineage::Lineage &lineage : real.window->workspace()->workspace().lineages) {
            QString device;
            for (const gate::DeviceInfo &info : real.window->devices()->devices()) {
                if (info.available && info.kind == lineage.surface->device
                    && info.platform == lineage.platform)
                    device = QString::fromStdString(info.name);
            }
            const QModelIndex row =
                library->model()->find(LibraryModel::Kind::Lineage, QString::fromStdString(lineage.key()));
            QCOMPARE(row.data(LibraryModel::RunsHereRole).toString(), device);
            QCOMPARE(row.data(Qt::ToolTipRole).toString().contains(QLatin1String("Runs on this machine")),
                     !device.isEmpty());
            marked += device.isEmpty() ? 0 : 1;
        }
        if (marked == 0)
            QSKIP("Nothing runs on this machine.");
    }

    /// What a filter finds is seen, however far the list had been scrolled.
    void theFirstMatchIsSeen()
    {
        const RealWindow real(QStringLiteral("topk-sorted/sm90/K01"), {1366, 768});
        QVERIFY(real.ready);
        const auto *tree = real.find<QTreeView>("library");
        auto *field = real.find<QLineEdit>("library", QStringLiteral("filterField"));
        const auto firstIsSeen = [tree] {
            return tree->verticalScrollBar()->value() == 0
                   && tree->viewport()->rect().contains(tree->visualRect(tree->model()->index(0, 0)));
        };
        tree->verticalScrollBar()->setValue(tree->verticalScrollBar()->maximum());
        QVERIFY(!firstIsSeen());
        real.focus("lineage");
        real.press(Qt::Key_Slash);
        for (const QChar letter : QStringLiteral("sm90")) {
            real.type(letter);
            QTRY_VERIFY(firstIsSeen());
            QVERIFY(tree->verticalScrollBar()->maximum() > 0);
            tree->verticalScrollBar()->setValue(tree->verticalScrollBar()->maximum() / 2);
        }
        // Without a filter, what is looked at is in view.
        real.press(Qt::Key_Escape);
        QVERIFY(field->text().isEmpty());
        QTRY_VERIFY(tree->viewport()->rect().contains(tree->visualRect(tree->currentIndex()).center()));
        QCOMPARE(tree->currentIndex().data(LibraryModel::KeyRole).toString(),
                 QStringLiteral("topk-sorted/sm90"));
    }

    /// From card to card the page stays; a card of the library after one of a step, and the other way round, begins with its fields.
    void thePageOfACardStaysWithinWhatIsGoneThrough()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *pages = real.find<QTabBar>("card", QStringLiteral("cardPages"));
        const int history = pages->count() - 1;
        QCOMPARE(pages->tabText(history), QStringLiteral("History"));
        pages->setCurrentIndex(history);
        real.focus("lineage");
        const QString before = real.row();
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QVERIFY(real.settle());
        QVERIFY(real.row() != before);
        QCOMPARE(pages->currentIndex(), history);

        real.focus("lineage");
        real.press(Qt::Key_Slash);
        real.type(QStringLiteral("verdict:none"));
        real.press(Qt::Key_Return);
        QVERIFY(real.hasFocus("library"));
        QCOMPARE(pages->currentIndex(), 0);
        pages->setCurrentIndex(history);
        const QString card = real.card();
        real.press(Qt::Key_J);
        QTRY_VERIFY(real.card() != card);
        QCOMPARE(pages->currentIndex(), history);

        real.focus("lineage");
        real.press(Qt::Key_Left, Qt::ControlModifier);
        QVERIFY(real.settle());
        QCOMPARE(pages->currentIndex(), 0);
    }

    void aVerdictDoesNotScrollTheLibrary()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        auto *tree = real.find<QTreeView>("library");
        QString card;
        for (int i = 0; i < 12; ++i)
            card = library->neighbourCard(card, 1);
        library->chooseCard(card);
        real.focus("library");
        const int scrolled = tree->verticalScrollBar()->value();
        QVERIFY(scrolled > 0);
        real.press(Qt::Key_A);
        QVERIFY(real.written());
        QCoreApplication::processEvents();
        const int rowHeight = tree->visualRect(tree->currentIndex()).height();
        QVERIFY(std::abs(tree->verticalScrollBar()->value() - scrolled) <= rowHeight);
        QVERIFY(real.card() != card);
        // Undone, one is back at the card.
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(real.card(), card);
        QVERIFY(real.written());
        QVERIFY(!real.record(card).standingReview());
    }

    void aCardIsLookedAtWithItsStep()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("library");
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        library->chooseCard(QStringLiteral("row-in-registers"));
        QCOMPARE(real.selection()->lineageKey(), QStringLiteral("softmax/sm90"));
        QCOMPARE(real.row(), QStringLiteral("K06"));
        QCOMPARE(real.card(), QStringLiteral("row-in-registers"));
        real.press(Qt::Key_Down, Qt::ControlModifier);
        const QString next = real.card();
        QCOMPARE(next, library->neighbourCard(QStringLiteral("row-in-registers"), 1));
        real.focus("diff");
        real.press(Qt::Key_Up, Qt::ControlModifier);
        QCOMPARE(real.card(), QStringLiteral("row-in-registers"));
        QVERIFY(real.hasFocus("diff"));
    }

    void theFilterFindsCardsByHowTheyStand()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *field = real.find<QLineEdit>("library", QStringLiteral("filterField"));
        const auto *tree = real.find<QTreeView>("library");
        int hypotheses = 0;
        int admitted = 0;
        for (const skills::CardRecord &record : real.window->workspace()->workspace().cards)
            (record.life() == skills::Life::Admitted ? admitted : hypotheses) += 1;
        field->setFocus();
        real.type(QStringLiteral("hypo"));
        QCOMPARE(cardsShown(*tree), hypotheses);
        if (admitted > 0) { // a word that no card has finds letters apart
            field->clear();
            real.type(QStringLiteral("admitted"));
            QCOMPARE(cardsShown(*tree), admitted);
        }
        field->clear();
        real.type(QStringLiteral("rowreg")); // letters apart still find what has no such word
        QVERIFY(cardsShown(*tree) >= 1);
    }

    /// Facets by keys: the menu of each says how many cards a word leaves, what is chosen is in the filter's text, Esc takes it back.
    void facetsAreChosenWithKeys()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        const auto *tree = real.find<QTreeView>("library");
        const int all = cardsShown(*tree);
        real.focus("lineage");
        real.press(Qt::Key_F, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(library->facets()->button(Facet::Life)->hasFocus());
        for (int i = 0; i < 5; ++i)
            real.press(Qt::Key_Right);
        QVERIFY(library->facets()->button(Facet::Platform)->hasFocus());
        real.press(Qt::Key_Down);
        const auto *menu = qobject_cast<QMenu *>(QApplication::activePopupWidget());
        QVERIFY(menu);
        const QStringList words = menu->activeAction()->text().split(QLatin1Char('\t'));
        QCOMPARE(words.size(), 2);
        real.press(Qt::Key_Return);
        QCOMPARE(library->filterField()->text(), QStringLiteral("platform:%1").arg(words.front()));
        const int left = cardsShown(*tree);
        QCOMPARE(left, words.back().toInt());
        QVERIFY(left > 0 && left < all);
        QVERIFY(library->facets()->button(Facet::Platform)->text().contains(QStringLiteral("✓")));
        // A second facet narrows it further, by the count that its menu says.
        real.press(Qt::Key_Right);
        real.press(Qt::Key_Down);
        menu = qobject_cast<QMenu *>(QApplication::activePopupWidget());
        QVERIFY(menu);
        const int both = menu->activeAction()->text().section(QLatin1Char('\t'), 1).toInt();
        real.press(Qt::Key_Return);
        QCOMPARE(cardsShown(*tree), both);
        real.press(Qt::Key_Escape);
        QVERIFY(library->filterField()->text().isEmpty());
        QCOMPARE(cardsShown(*tree), all);
    }

    void theFiltersTextKnowsFacets()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        const auto *tree = real.find<QTreeView>("library");
        const auto &cards = real.window->workspace()->workspace().cards;
        const auto count = [&](const auto &has) {
            return static_cast<int>(std::count_if(cards.begin(), cards.end(), has));
        };
        real.focus("library");
        real.press(Qt::Key_Slash);
        real.type(QStringLiteral("life:hypo"));
        QCOMPARE(cardsShown(*tree), count([](const skills::CardRecord &record) {
                     return record.life() == skills::Life::Hypothesis;
                 }));
        real.type(QStringLiteral(" viewed:no"));
        const int unseen = cardsShown(*tree);
        real.press(Qt::Key_Return);
        const QString seen = real.card();
        real.press(Qt::Key_V);
        QCOMPARE(cardsShown(*tree), unseen - 1); // and one is at the next
        QVERIFY(!real.card().isEmpty() && real.card() != seen);
        QCOMPARE(tree->currentIndex().data(LibraryModel::KeyRole).toString(), real.card());
        real.press(Qt::Key_Slash); // takes what was typed with it
        real.type(QStringLiteral("lfe:hypo by:nobody"));
        QCOMPARE(cardsShown(*tree), 0);
        const auto labels = library->findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->isVisible() && label->text().contains(QStringLiteral("“lfe:hypo” names no facet"))
                   && label->text().contains(QStringLiteral("lint:error"));
        }));
        QVERIFY(library->filterField()->toolTip().contains(QStringLiteral("platform:sm90")));
    }

    /// Several cards at once: one question that says how many, one undo for all of it.
    void aBatchIsAskedOnceAndUndoneAtOnce()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        const QString first = library->neighbourCard({}, 1);
        const QString leftOut = library->neighbourCard(first, 1);
        const QStringList wanted{first, library->neighbourCard(leftOut, 1)};
        library->chooseCard(first);
        real.focus("library");
        real.press(Qt::Key_Space);
        real.press(Qt::Key_Space, Qt::ShiftModifier); // the second is left out
        real.press(Qt::Key_Space);
        QCOMPARE(real.selection()->markedCards(), wanted);
        const QString standing = real.find<QLabel>("card", QStringLiteral("standing"))->text();
        QVERIFY2(standing.contains(QStringLiteral("2 cards are selected")), qPrintable(standing));

        real.press(Qt::Key_A);
        const auto *question = real.find<QLabel>("card", QStringLiteral("question"));
        QVERIFY(question->isVisible() && question->text().contains(QStringLiteral("Approve 2 cards?")));
        real.press(Qt::Key_Escape);
        QVERIFY(real.hasFocus("library"));
        QVERIFY(!real.record(first).standingReview());
        QCOMPARE(real.selection()->markedCards(), wanted);
        real.press(Qt::Key_A);
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        for (const QString &card : wanted)
            QCOMPARE(real.record(card).standingReview()->verdict, skills::ReviewVerdict::Approve);
        QVERIFY(!real.record(leftOut).standingReview());
        QVERIFY(real.selection()->markedCards().isEmpty());
        QVERIFY(real.hasFocus("library"));

        const std::size_t events = real.record(first).reviews.size();
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        for (const QString &card : wanted)
            QVERIFY(!real.record(card).standingReview());
        QCOMPARE(real.record(first).reviews.size(), events + 1); // nothing is erased
        QVERIFY(!real.window->reviewer()->canUndoAnything());
    }

    void allThatIsShownIsRejectedForOneReason()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const auto *tree = real.find<QTreeView>("library");
        real.focus("library");
        real.press(Qt::Key_Slash);
        real.type(QStringLiteral("platform:pocl family:reduction"));
        const int shown = cardsShown(*tree);
        QVERIFY(shown > 1);
        real.press(Qt::Key_Return);
        real.press(Qt::Key_A, Qt::ControlModifier);
        const QStringList marked = real.selection()->markedCards();
        QCOMPARE(marked.size(), shown);
        real.press(Qt::Key_V);
        QVERIFY(real.find<QLabel>("card", QStringLiteral("question"))
                    ->text()
                    .contains(QStringLiteral("Mark %1 cards as viewed?").arg(shown)));
        real.press(Qt::Key_Escape);
        real.press(Qt::Key_X);
        real.type(QStringLiteral("too narrow"));
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        for (const QString &card : marked)
            QCOMPARE(real.record(card).standingReview()->reason, std::string("too narrow"));
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        for (const QString &card : marked)
            QVERIFY(!real.record(card).standingReview());
    }

    /// Who has no name yet is asked once, with the login's as the answer; it stands in the bar and can be changed there.
    void theReviewersNameIsAskedOnceAndShown()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        CardReviewer::setAuthor({});
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        const QString first = library->neighbourCard({}, 1);
        library->chooseCard(first);
        real.focus("library");
        const auto *signedAs = real.find<QToolButton>("card", QStringLiteral("reviewer"));
        QVERIFY(signedAs->text().contains(QStringLiteral("Unsigned")));
        real.press(Qt::Key_A);
        auto *field = qobject_cast<QLineEdit *>(QApplication::focusWidget());
        QVERIFY(field && field->accessibleName().contains(QStringLiteral("Your name")));
        field->selectAll();
        real.type(QStringLiteral("Ada Lovelace"));
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        QCOMPARE(real.record(first).standingReview()->author, std::string("Ada Lovelace"));
        QVERIFY(signedAs->text().contains(QStringLiteral("Ada Lovelace")));
        const QString second = real.card();
        real.press(Qt::Key_A); // no second question
        QVERIFY(real.written());
        QCOMPARE(real.record(second).standingReview()->author, std::string("Ada Lovelace"));
    }

    /// The name comes before the reason: who calls it off has typed nothing yet.
    void theNameComesBeforeTheReason()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        CardReviewer::setAuthor({});
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        const QString card = library->neighbourCard({}, 1);
        library->chooseCard(card);
        real.focus("library");
        const auto asked = [] {
            const auto *field = qobject_cast<QLineEdit *>(QApplication::focusWidget());
            return field ? field->accessibleName() : QString();
        };
        real.press(Qt::Key_X);
        QVERIFY2(asked().contains(QStringLiteral("Your name")), qPrintable(asked()));
        real.press(Qt::Key_Escape);
        QVERIFY(real.hasFocus("library"));
        QVERIFY(!CardReviewer::isAuthorSet());
        QVERIFY(!real.record(card).standingReview());
        real.press(Qt::Key_X);
        real.press(Qt::Key_A, Qt::ControlModifier);
        real.type(QStringLiteral("Ada Lovelace"));
        real.press(Qt::Key_Return);
        QVERIFY2(asked().contains(QStringLiteral("Why is it rejected")), qPrintable(asked()));
        real.type(QStringLiteral("too narrow"));
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        QCOMPARE(real.record(card).standingReview()->reason, std::string("too narrow"));
        QCOMPARE(real.record(card).standingReview()->author, std::string("Ada Lovelace"));
        library->chooseCard(card);
        real.focus("library");
        real.press(Qt::Key_X); // asked once
        QVERIFY2(asked().contains(QStringLiteral("Why is it rejected")), qPrintable(asked()));
        real.press(Qt::Key_Escape);
    }
};

KLINEAGE_UI_TEST(TestTriageJourney)
#include "tst_triagejourney.moc"
