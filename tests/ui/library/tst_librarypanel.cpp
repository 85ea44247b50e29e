// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "ui/library/librarypanel.h"
#include "ui/models/libraryfilter.h"
#include "ui/models/librarymodel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTest>
#include <QTreeView>

#include <algorithm>
#include <memory>

using namespace klineage;
using namespace klineage::ui;

namespace {

kernel::DeviceKind rowKind(const char *key, const WorkspaceModel &workspace)
{
    return workspace.lineage(QLatin1String(key))->surface->device;
}

/// What a person sees of the tree, from top to bottom.
QStringList shownRows(const QTreeView &tree)
{
    QStringList rows;
    for (QModelIndex index = tree.model()->index(0, 0); index.isValid(); index = tree.indexBelow(index))
        rows << index.data().toString();
    return rows;
}

class PaintCounter : public QObject
{
public:
    explicit PaintCounter(int *paints)
        : m_paints(paints)
    {}

    bool eventFilter(QObject *, QEvent *event) override
    {
        *m_paints += event->type() == QEvent::Paint ? 1 : 0;
        return false;
    }

private:
    int *m_paints;
};

} // namespace

class TestLibraryPanel : public UiTest
{
    Q_OBJECT

private slots:
    void anUnreadWorkspaceIsSaid()
    {
        WorkspaceModel workspace;
        Selection selection;
        const LibraryPanel panel(&workspace, &selection);
        QVERIFY(!panel.findChild<QLabel *>()->text().isEmpty());
    }

    void lineagesOfOnePlatformAreToldApart()
    {
        Workspace two = sampleWorkspace();
        lineage::Lineage walked = two.lineages.front();
        walked.name = "walked";
        two.lineages.push_back(walked);
        Shown shown(two);
        const QStringList rows = shownRows(*shown.tree);
        QCOMPARE(rows.count(QStringLiteral("pocl")), 1);
        QCOMPARE(rows.count(QStringLiteral("pocl · walked")), 1);
        // The folder's name finds it too.
        QTest::keyClicks(shown.panel->filterField(), QStringLiteral("pocl-walked"));
        QVERIFY(shownRows(*shown.tree).contains(QStringLiteral("pocl · walked")));
        QVERIFY(!shownRows(*shown.tree).contains(QStringLiteral("sm90")));
    }

    void lineagesThatRunHereAreMarked()
    {
        Shown shown(sampleWorkspace());
        const auto rowOf = [&shown](const char *key) {
            const LibraryModel *model = shown.panel->model();
            return model->find(LibraryModel::Kind::Lineage, QLatin1String(key));
        };
        const auto deviceOf = [&rowOf](const char *key) {
            return rowOf(key).data(LibraryModel::RunsHereRole).toString();
        };
        const QImage before = shown.tree->viewport()->grab().toImage();
        QVERIFY(deviceOf("toy/pocl").isEmpty());
        gate::DeviceInfo cpu;
        cpu.kind = rowKind("toy/pocl", shown.workspace);
        cpu.available = true;
        cpu.name = "a processor";
        cpu.platform = "pocl";
        gate::DeviceInfo none;
        none.kind = rowKind("toy/sm90", shown.workspace);
        shown.panel->setDevices({cpu, none});
        QCOMPARE(deviceOf("toy/pocl"), QStringLiteral("a processor"));
        QVERIFY(deviceOf("toy/sm90").isEmpty());
        QVERIFY(rowOf("toy/pocl")
                    .data(Qt::ToolTipRole)
                    .toString()
                    .contains(QLatin1String("Runs on this machine: a processor")));
        QVERIFY(rowOf("toy/pocl")
                    .data(Qt::AccessibleDescriptionRole)
                    .toString()
                    .endsWith(QLatin1String("runs on this machine: a processor")));
        QVERIFY(before != shown.tree->viewport()->grab().toImage()); // it can be seen
        // A device of another platform does not run them.
        cpu.platform = "another";
        shown.panel->setDevices({cpu});
        QVERIFY(deviceOf("toy/pocl").isEmpty());
        QCOMPARE(shown.tree->viewport()->grab().toImage(), before);
    }

    void theFilterIsLiveAndEscapeTakesItBack()
    {
        Shown shown(sampleWorkspace());
        const QStringList all = shownRows(*shown.tree);
        QLineEdit *field = shown.panel->filterField();
        QTest::keyClicks(field, QStringLiteral("gamm"));
        QStringList rows = shownRows(*shown.tree);
        QVERIFY(rows.contains(QStringLiteral("gamma")));
        QVERIFY(!rows.contains(QStringLiteral("alpha")));
        QTest::keyClicks(field, QStringLiteral("zzz"));
        QVERIFY(!shown.tree->isVisible());
        const auto labels = shown.panel->findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->isVisible() && label->text().contains(QLatin1String("gammzzz"));
        }));
        QTest::keyClick(field, Qt::Key_Escape);
        QVERIFY(shown.tree->isVisible());
        QCOMPARE(shownRows(*shown.tree), all);
    }

    /// A layout that is made within a paint asks for a second one.
    void aKeyPaintsTheListOnce()
    {
        Shown shown(sampleWorkspace());
        QCoreApplication::processEvents();
        int paints = 0;
        PaintCounter counter(&paints);
        shown.tree->viewport()->installEventFilter(&counter);
        for (const char *key : {"t", "o", "y"}) {
            paints = 0;
            QTest::keyClicks(shown.panel->filterField(), QLatin1String(key));
            QCoreApplication::sendPostedEvents();
            QCoreApplication::processEvents();
            QCOMPARE(paints, 1);
        }
    }

    /// The rows of the filter are the library's, in its order but for the sections, and a row that stays is the same row.
    void theFilterKeepsTheLibrarysRows_data()
    {
        QTest::addColumn<QString>("query");
        QTest::addColumn<bool>("cardsFirst");
        for (const char *query : {"", "toy", "gamm", "to review", "life:hypothesis"}) {
            for (const bool first : {false, true})
                QTest::addRow("%s, cards %s", query, first ? "first" : "last")
                    << QString::fromLatin1(query) << first;
        }
    }

    void theFilterKeepsTheLibrarysRows()
    {
        QFETCH(const QString, query);
        QFETCH(const bool, cardsFirst);
        Workspace content = sampleWorkspace();
        content.cards.front().card.retired = true; // two sections of cards
        LibraryModel library;
        library.refresh(content);
        LibraryFilter filter(&library);
        const QModelIndex gamma = library.find(LibraryModel::Kind::Card, QStringLiteral("gamma"));
        const QPersistentModelIndex held = filter.mapFromSource(gamma);
        QVERIFY(gamma.isValid() && held.isValid());
        filter.setCardsFirst(cardsFirst);
        filter.setQuery(query);
        QCOMPARE(QModelIndex(held), filter.mapFromSource(gamma));

        const bool ofFacets = filter.query().hasFacets();
        const QStringList words = QString::fromStdString(filter.query().text).split(' ', Qt::SkipEmptyParts);
        const auto hasWords = [&](const QModelIndex &row) {
            return std::all_of(words.begin(), words.end(),
                               [&](const QString &word) { return library.searchText(row).contains(word); });
        };
        const auto keeps = [&](auto &self, const QModelIndex &row) -> bool {
            const CardFacets *facets = library.facets(row);
            bool kept =
                query.isEmpty() || (ofFacets ? facets && filter.query().accepts(*facets) : hasWords(row));
            for (int i = 0; i < library.rowCount(row) && !kept; ++i)
                kept = self(self, library.index(i, 0, row));
            return kept;
        };
        const auto check = [&](auto &self, const QModelIndex &parent, bool isBelowKept) -> void {
            QStringList wanted;
            for (const bool cards : {true, false}) { // only sections are parted
                for (int i = 0; i < library.rowCount(parent); ++i) {
                    const QModelIndex row = library.index(i, 0, parent);
                    const bool isFirst =
                        cardsFirst && !parent.isValid() && library.facets(library.index(0, 0, row));
                    const bool kept = isBelowKept || keeps(keeps, row);
                    if (cards == isFirst && kept)
                        wanted << row.data().toString();
                    if (!cards)
                        continue;
                    QCOMPARE(filter.mapFromSource(row).isValid(), kept);
                    QCOMPARE(filter.mapToSource(filter.mapFromSource(row)), kept ? row : QModelIndex());
                    self(self, row,
                         isBelowKept || (!query.isEmpty() && !ofFacets && parent.isValid() && hasWords(row)));
                }
            }
            QStringList rows;
            const QModelIndex place = filter.mapFromSource(parent);
            for (int i = 0; (place.isValid() || !parent.isValid()) && i < filter.rowCount(place); ++i) {
                const QModelIndex row = filter.index(i, 0, place);
                QCOMPARE(row.parent(), place);
                QCOMPARE(row.flags(), filter.mapToSource(row).flags());
                QCOMPARE(filter.hasChildren(row), filter.rowCount(row) > 0);
                rows << row.data().toString();
            }
            QCOMPARE(rows, wanted);
        };
        check(check, {}, false);
    }

    void downLeavesTheFilterForTheFirstRowThatCanBeChosen()
    {
        Shown shown(sampleWorkspace());
        QTest::keyClicks(shown.panel->filterField(), QStringLiteral("beta"));
        QTest::keyClick(shown.panel->filterField(), Qt::Key_Down);
        QCOMPARE(shown.selection.card(), QStringLiteral("beta"));
    }

    void choosingSetsTheSelectionAndFollowsIt()
    {
        Shown shown(sampleWorkspace());
        QSignalSpy changed(&shown.selection, &Selection::lineageChanged);
        shown.selection.setLineage(QStringLiteral("toy/sm90"), QStringLiteral("K01"));
        QCOMPARE(shown.tree->currentIndex().data(LibraryModel::KeyRole).toString(),
                 QStringLiteral("toy/sm90"));
        QCOMPARE(changed.count(), 1); // following is no choosing
        shown.tree->setFocus();
        QTest::keyClick(shown.tree, Qt::Key_Up); // to toy/pocl
        QCOMPARE(shown.selection.lineageKey(), QStringLiteral("toy/pocl"));
        QCOMPARE(shown.selection.row(), QStringLiteral("K03"));
    }

    void aClosedWorkloadStaysClosedWhenTheWorkspaceIsReadAgain()
    {
        Shown shown(sampleWorkspace());
        const QModelIndex section = shown.tree->model()->index(0, 0);
        const QModelIndex toy = shown.tree->model()->index(0, 0, section);
        QCOMPARE(toy.data().toString(), QStringLiteral("toy"));
        shown.tree->collapse(toy);
        QVERIFY(!shownRows(*shown.tree).contains(QStringLiteral("pocl")));
        Workspace again = sampleWorkspace();
        again.cards.pop_back();
        shown.workspace.setWorkspace(again);
        QVERIFY(!shownRows(*shown.tree).contains(QStringLiteral("pocl")));
        QCOMPARE(shown.panel->windowTitle(), QStringLiteral("2 to review"));
    }

private:
    struct Shown {
        explicit Shown(const Workspace &content)
        {
            workspace.setWorkspace(content);
            panel = std::make_unique<LibraryPanel>(&workspace, &selection);
            panel->resize(300, 500);
            panel->show();
            tree = panel->findChild<QTreeView *>();
        }
        WorkspaceModel workspace;
        Selection selection;
        std::unique_ptr<LibraryPanel> panel;
        QTreeView *tree = nullptr;
    };
};

KLINEAGE_UI_TEST(TestLibraryPanel)
#include "tst_librarypanel.moc"
