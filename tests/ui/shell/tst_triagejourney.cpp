// SPDX-License-Identifier: GPL-3.0-or-later
// Reviewing many cards from the library, with keys only.
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/library/librarypanel.h"
#include "ui/models/librarymodel.h"

#include <QLineEdit>
#include <QScrollBar>
#include <QTreeView>

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
    void allCardsAreReviewedWithAKeyEach()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        const auto *tree = real.find<QTreeView>("library");
        const std::size_t cards = real.window->workspace()->workspace().cards.size();
        const QString first = library->neighbourCard({}, 1);
        int keys = 0;
        real.press(Qt::Key_P, Qt::ControlModifier);
        real.type(first);
        real.press(Qt::Key_Return);
        QCOMPARE(real.card(), first);
        QVERIFY(real.hasFocus("library"));
        for (std::size_t i = 0; i < cards; ++i) {
            const QString card = real.card();
            if (i % 7 == 3) {
                real.press(Qt::Key_X);
                real.type(QStringLiteral("no"));
                real.press(Qt::Key_Return);
                keys += 4;
            } else {
                real.press(Qt::Key_A);
                ++keys;
            }
            QVERIFY2(i + 1 == cards || real.card() != card, qPrintable(card));
            QVERIFY(real.hasFocus("library"));
            QVERIFY(real.written());
            if (i + 1 < cards) {
                // The next card is the current row, and it can be seen.
                QCOMPARE(tree->currentIndex().data(LibraryModel::KeyRole).toString(), real.card());
                QVERIFY(tree->viewport()->rect().contains(tree->visualRect(tree->currentIndex()).center()));
            }
        }
        QVERIFY(keys <= static_cast<int>(cards * 90 / 28));
        for (const skills::CardRecord &record : real.window->workspace()->workspace().cards)
            QVERIFY2(record.standingReview(), record.card.name.c_str());
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
};

KLINEAGE_UI_TEST(TestTriageJourney)
#include "tst_triagejourney.moc"
