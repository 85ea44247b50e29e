// SPDX-License-Identifier: GPL-3.0-or-later
// What a card's page says beside its claims: relations, probes, revisions, and the way to admit it.
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/cards/relationgraph.h"
#include "ui/cards/revisioncompare.h"
#include "ui/diff/view/diffview.h"
#include "ui/library/librarypanel.h"
#include "ui/runs/startdialog.h"

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QTabBar>
#include <QTextBrowser>
#include <QTimer>

using namespace klineage;
using namespace klineage::ui;

namespace {

void choose(const RealWindow &real, const QString &card)
{
    qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")))->chooseCard(card);
    QCOMPARE(real.card(), card);
}

void openTab(const RealWindow &real, const QString &text)
{
    auto *tabs = real.find<QTabBar>("card");
    for (int i = 0; i < tabs->count(); ++i) {
        if (tabs->tabText(i) == text)
            tabs->setCurrentIndex(i);
    }
    QCOMPARE(tabs->tabText(tabs->currentIndex()), text);
}

} // namespace

class TestCardJourney : public UiTest
{
    Q_OBJECT

private slots:
    void relationsLeadToOtherCards()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        // Of the shipped cards one that another one provides for.
        const auto &cards = real.window->workspace()->workspace().cards;
        QString name;
        skills::Surroundings around;
        for (const skills::CardRecord &record : cards) {
            around = skills::surroundingsOf(cards, record.card.name, 1);
            if (around.nodes.size() > 1 && around.nodes[1].column == -1) {
                name = QString::fromStdString(record.card.name);
                break;
            }
        }
        QVERIFY(!name.isEmpty());
        const QString provider = QString::fromStdString(around.nodes[1].card);
        choose(real, name);
        openTab(real, QStringLiteral("Relations"));
        auto *page = real.find<QTextBrowser>("card");
        QVERIFY(page->toPlainText().contains(provider));
        QVERIFY(page->toPlainText().contains(QStringLiteral("Near-duplicates")));
        // The graph, with keys.
        auto *graph = real.find<RelationGraph>("card");
        QVERIFY(graph->isVisible());
        QVERIFY(graph->rows().contains(provider) && graph->rows().contains(name));
        QVERIFY(graph->accessibleDescription().contains(QStringLiteral("rests on")));
        graph->setFocus();
        while (graph->rows()[graph->currentRow()] != provider && graph->currentRow() > 0)
            real.press(Qt::Key_Up);
        real.press(Qt::Key_Return);
        QCOMPARE(real.card(), provider);
        QVERIFY(graph->rows().contains(name)); // the same line, seen from its other end
        // The list, with keys.
        choose(real, name);
        page->setFocus();
        real.press(Qt::Key_Tab);
        real.press(Qt::Key_Return);
        QVERIFY(real.card() != name);
        QVERIFY(real.window->workspace()->card(real.card()));
    }

    /// A card that roundtrips admitted and a person rejected is a rejected one, above all at its head.
    void aRejectedCardSaysSoAtItsHead()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        QString name;
        for (const skills::CardRecord &record : real.window->workspace()->workspace().cards) {
            if (record.life() == skills::Life::Admitted && name.isEmpty())
                name = QString::fromStdString(record.card.name);
        }
        QVERIFY(!name.isEmpty());
        choose(real, name);
        const auto *status = real.find<QLabel>("card", QStringLiteral("cardStatus"));
        QVERIFY2(status->text().contains(QLatin1String("admitted")), qPrintable(status->text()));
        real.focus("library");
        real.press(Qt::Key_X);
        real.type(QStringLiteral("Holds for one device alone"));
        real.press(Qt::Key_Return);
        QVERIFY(real.written());
        choose(real, name);
        QTRY_VERIFY2(status->text().contains(QLatin1String("rejected")), qPrintable(status->text()));
        QVERIFY(!status->text().contains(QLatin1String("admitted")));
        real.press(Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(real.written());
        choose(real, name);
        QTRY_VERIFY2(status->text().contains(QLatin1String("admitted")), qPrintable(status->text()));
    }

    void aProbeLeadsToItsTrial()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const QString name = QStringLiteral("row-in-registers");
        choose(real, name);
        QVERIFY(!real.record(name).card.probes.empty());
        openTab(real, QStringLiteral("Evidence"));
        auto *page = real.find<QTextBrowser>("card");
        const QString text = page->toPlainText();
        QVERIFY(text.contains(QStringLiteral("Risk, probed")));
        QVERIFY(text.contains(QStringLiteral("Risk, believed"))
                || text.contains(QStringLiteral("Risk, refuted")));
        const QString trial =
            QStringLiteral("trial:") + QString::fromStdString(real.record(name).card.probes.front().trial);
        QVERIFY(page->toHtml().contains(QStringLiteral("cite:") + trial));
        emit page->anchorClicked(QUrl(QStringLiteral("cite:") + trial));
        QCOMPARE(real.row(), trial);
        QCOMPARE(real.selection()->lineageKey(), QStringLiteral("softmax/pocl"));
        openTab(real, QStringLiteral("Verification"));
        QTRY_VERIFY(page->toPlainText().contains(QStringLiteral("median gain")));
        QVERIFY(page->toPlainText().contains(QStringLiteral("Record of applications")));
    }

    void revisionsAreCompared()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const QString name = QStringLiteral("row-in-registers");
        choose(real, name);
        const std::size_t revisions = skills::revisionsOf(real.record(name)).size();
        QVERIFY(revisions > 2);
        real.focus("library");
        real.press(Qt::Key_D);
        const auto *compare = real.find<RevisionCompare>("card");
        QVERIFY(compare->isVisible());
        QVERIFY(real.hasFocus("card"));
        QCOMPARE(compare->older()->count(), static_cast<int>(revisions));
        const auto shown = [&] {
            return compare->diff()->document() && !compare->diff()->document()->isSingle();
        };
        QTRY_VERIFY(shown());
        QVERIFY(compare->diff()->hunkCount() > 0);
        const int hunks = compare->diff()->hunkCount();
        // Another pair, by keys: the first revision beside the newest has more changes, or the same ones.
        compare->older()->setFocus();
        real.press(Qt::Key_Home);
        QCOMPARE(compare->older()->currentIndex(), 0);
        QTRY_VERIFY(shown());
        QVERIFY(compare->diff()->hunkCount() >= hunks);
        real.press(Qt::Key_Escape);
        QVERIFY(!compare->isVisible());
        QVERIFY(real.find<QTextBrowser>("card")->hasFocus());
        QVERIFY(real.find<QTextBrowser>("card")->toPlainText().contains(QStringLiteral("Compare revisions")));
    }

    void whatNobodyTriedCanBeAdmitted()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const auto &cards = real.window->workspace()->workspace().cards;
        const auto untried = std::find_if(cards.begin(), cards.end(), [](const skills::CardRecord &record) {
            return record.verifications.empty() && !record.card.retired;
        });
        const auto tried = std::find_if(cards.begin(), cards.end(), [](const skills::CardRecord &record) {
            return !record.verifications.empty();
        });
        QVERIFY(untried != cards.end() && tried != cards.end());
        const QString name = QString::fromStdString(untried->card.name);
        choose(real, QString::fromStdString(tried->card.name));
        openTab(real, QStringLiteral("Verification"));
        auto *admit = real.find<QPushButton>("card", QStringLiteral("admitButton"));
        QVERIFY(!admit->isVisible());
        choose(real, name);
        QVERIFY(admit->isVisible());
        admit->setFocus();
        bool asked = false;
        QTimer::singleShot(0, real.window.get(), [&] {
            auto *dialog = qobject_cast<StartDialog *>(QApplication::activeModalWidget());
            if (!dialog)
                return;
            asked = dialog->kind() == run::Kind::Admit && dialog->request().subject == name.toStdString();
            dialog->reject();
        });
        real.press(Qt::Key_Space);
        QVERIFY(asked);
    }
};

KLINEAGE_UI_TEST(TestCardJourney)
#include "tst_cardjourney.moc"
