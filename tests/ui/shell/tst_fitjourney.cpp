// SPDX-License-Identifier: GPL-3.0-or-later
// Nothing is cut off on small screens, and a layout with larger text leaves nothing behind.
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/library/facetbar.h"
#include "ui/library/librarypanel.h"
#include "ui/models/libraryfilter.h"
#include "ui/profile/profilemodel.h"
#include "ui/shell/centre.h"
#include "ui/shell/docks/layouts.h"
#include "ui/shell/topbar.h"
#include "ui/story/storypanel.h"
#include "ui/story/windows/presenter.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QComboBox>
#include <QDockWidget>
#include <QHeaderView>
#include <QLineEdit>
#include <QStatusBar>
#include <QTabBar>
#include <QTableView>
#include <QToolButton>

using namespace klineage;
using namespace klineage::ui;

namespace {

void settleAll(const RealWindow &real)
{
    QVERIFY(real.settle());
    QTest::qWait(50); // layouts are posted
    QVERIFY(real.settle());
}

/// "lineage.1 0: 230, rows 24", for each column of each table of the panels, one of which after the other is shown.
QStringList columnsOf(const RealWindow &real)
{
    QStringList columns;
    for (const char *panel : {"lineage", "machine", "runs", "problems", "trajectory", "profile"}) {
        std::as_const(*real.window->actions())
            .find(QStringLiteral("panel.") + QLatin1String(panel))
            ->action->trigger();
        settleAll(real);
        int number = 0;
        for (const QTableView *table :
             real.window->panel(QLatin1String(panel))->findChildren<QTableView *>()) {
            ++number;
            for (int i = 0; table->isVisible() && i < table->model()->columnCount(); ++i)
                columns << QStringLiteral("%1.%2 %3: %4, rows %5")
                               .arg(QLatin1String(panel))
                               .arg(number)
                               .arg(i)
                               .arg(table->isColumnHidden(i) ? 0 : table->columnWidth(i))
                               .arg(table->verticalHeader()->defaultSectionSize());
        }
    }
    return columns;
}

/// Buttons, fields and lists of a panel that reach out of it, or are narrower than they must be.
QStringList cut(const QWidget &panel)
{
    QStringList names;
    for (const QWidget *child : panel.findChildren<QWidget *>()) {
        const auto *button = qobject_cast<const QToolButton *>(child);
        if (!child->isVisible() || (!button && !qobject_cast<const QComboBox *>(child)))
            continue;
        const QRect at(child->mapTo(&panel, QPoint()), child->size());
        if (!panel.rect().contains(at) || (button && child->width() < child->sizeHint().width()))
            names << QStringLiteral("%1 %2").arg(child->accessibleName(),
                                                 button ? button->text() : QString());
    }
    return names;
}

} // namespace

class TestFitJourney : public UiTest
{
    Q_OBJECT

private slots:
    void theDemoLeavesNoColumnBehind()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const double scale = textScale();
        (void)columnsOf(real); // fits them once
        const QStringList before = columnsOf(real);
        QVERIFY(before.size() > 10);
        const auto layout = [&real](Qt::Key key) {
            real.press(key, Qt::ControlModifier | Qt::AltModifier);
            settleAll(real);
        };
        layout(Qt::Key_4);
        QVERIFY(textScale() > scale);
        layout(Qt::Key_1);
        QCOMPARE(textScale(), scale);
        QCOMPARE(columnsOf(real), before);
        // With the presentation in between, which tells the lineage from its beginning.
        const QString row = real.selection()->row();
        layout(Qt::Key_4);
        real.press(Qt::Key_F5, Qt::ShiftModifier);
        auto *story = qobject_cast<StoryPanel *>(real.window->panel(QStringLiteral("story")));
        QVERIFY(story->presenter() && getsKeys(*story->presenter()));
        real.press(Qt::Key_Escape);
        QVERIFY(takeKeys(*real.window));
        real.selection()->setRow(row);
        layout(Qt::Key_1);
        QCOMPARE(columnsOf(real), before);
    }

    /// A table whose columns were fitted to larger text takes no more room afterwards.
    void whatWasFittedInTheDemoShrinksWithTheText()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        auto *story = qobject_cast<StoryPanel *>(real.window->panel(QStringLiteral("story")));
        std::as_const(*real.window->actions()).find(QStringLiteral("panel.story"))->action->trigger();
        story->showTable(true);
        settleAll(real);
        const QHeaderView *header = story->table()->horizontalHeader();
        const int before = header->length();
        QVERIFY(before > 200);
        real.press(Qt::Key_4, Qt::ControlModifier | Qt::AltModifier);
        settleAll(real);
        for (const char *lineage : {"softmax/sm90", "gemm/sm90"}) { // fits anew
            real.selection()->setLineage(QLatin1String(lineage), QStringLiteral("K05"));
            settleAll(real);
        }
        QVERIFY2(header->length() > before * 115 / 100, qPrintable(QString::number(header->length())));
        real.press(Qt::Key_1, Qt::ControlModifier | Qt::AltModifier);
        settleAll(real);
        QVERIFY2(std::abs(header->length() - before) < before * 6 / 100,
                 qPrintable(QStringLiteral("%1, was %2").arg(header->length()).arg(before)));
    }

    /// Every page and layout in a window of the size of a small screen.
    void smallScreens_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::newRow("1366x768") << QSize(1366, 768);
        QTest::newRow("1024x768") << QSize(1024, 768);
    }

    void smallScreens()
    {
        QFETCH(QSize, size);
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), size);
        QVERIFY(real.ready);
        for (const char *page : {"diff", "editor", "run", "experiments", "compare"}) {
            real.window->centre()->showPage(QLatin1String(page));
            settleAll(real);
            for (const WindowLayout &layout : windowLayouts()) {
                if (layout.textScale > 1)
                    continue; // is for large screens
                real.window->applyLayout(layout.id);
                real.window->centre()->showPage(QLatin1String(page));
                settleAll(real);
                const QSize least = real.window->minimumSizeHint();
                QVERIFY2(least.width() <= size.width() && least.height() <= size.height(),
                         qPrintable(QStringLiteral("%1 in %2 wants %3 x %4")
                                        .arg(QLatin1String(page), layout.id)
                                        .arg(least.width())
                                        .arg(least.height())));
                QCOMPARE(real.window->size(), size);
            }
        }
    }

    /// A screen of 1366 x 768 at 1.5: what is below the centre has a height in which a plot can be read.
    void lowWindowsKeepTheirDocks()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {911, 512});
        QVERIFY(real.ready);
        for (const char *layout : {"run", "review"}) {
            real.window->applyLayout(QLatin1String(layout));
            std::as_const(*real.window->actions())
                .find(QStringLiteral("panel.trajectory"))
                ->action->trigger();
            settleAll(real);
            const int height = real.window->panel(QStringLiteral("trajectory"))->height();
            QVERIFY2(height >= 140,
                     qPrintable(QStringLiteral("%1: %2").arg(QLatin1String(layout)).arg(height)));
        }
    }

    /// In the narrowest dock that it comes in on a screen of 1366 x 768.
    void profileTabsAreWhole()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {1366, 768});
        QVERIFY(real.ready);
        const auto *tabs = real.find<QTabBar>("profile", QStringLiteral("profileViews"));
        QVERIFY(tabs);
        for (int i = 0; i + 1 < tabs->count(); ++i)
            QVERIFY2(tabs->tabRect(i).right() <= tabs->width(), qPrintable(tabs->tabText(i)));
    }

    void rowsOfControlsWrap()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {1024, 768});
        QVERIFY(real.ready);
        real.window->centre()->showPage(QStringLiteral("compare"));
        QWidget *compare = real.window->panel(QStringLiteral("compare"));
        QWidget *story = real.window->panel(QStringLiteral("story"));
        std::as_const(*real.window->actions()).find(QStringLiteral("panel.story"))->action->trigger();
        settleAll(real);
        QCOMPARE(cut(*compare), QStringList());
        QCOMPARE(cut(*story), QStringList());
        // As narrow as they may become.
        for (QWidget *panel : {compare, story}) {
            panel->setParent(nullptr);
            panel->resize(panel->minimumSizeHint().width(), 600);
            QVERIFY2(panel->width() <= 320, qPrintable(QString::number(panel->width())));
            panel->show();
            QVERIFY(QTest::qWaitForWindowExposed(panel));
            QCoreApplication::processEvents();
            QCOMPARE(cut(*panel), QStringList());
        }
        delete compare;
        delete story;
    }

    void facetsAreWhole()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {1024, 768});
        QVERIFY(real.ready);
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        QCOMPARE(cut(*library->facets()), QStringList());
        real.focus("library");
        real.press(Qt::Key_Slash);
        real.type(QStringLiteral("platform:sm90 family:reduction verdict:none")); // bold ones are wider
        settleAll(real);
        QCOMPARE(cut(*library->facets()), QStringList());
    }

    /// On a screen of 1366 x 768 at 1.5, with larger text too.
    void facetsOfTheInboxAreWhole()
    {
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), {911, 512}, QStringLiteral("curate"));
        QVERIFY(real.ready);
        auto *library = qobject_cast<LibraryPanel *>(real.window->panel(QStringLiteral("library")));
        for (const double scale : {1.0, 1.25, 1.5}) {
            Theme::setTextScale(scale);
            settleAll(real);
            const QStringList missed = cut(*library->facets());
            Theme::setTextScale(1);
            QVERIFY2(missed.isEmpty(),
                     qPrintable(QStringLiteral("%1: %2").arg(scale).arg(missed.join(QStringLiteral(", ")))));
        }
    }

    void theMenuStaysInTheWindow_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::newRow("1600x1000") << QSize(1600, 1000);
        QTest::newRow("1366x768") << QSize(1366, 768);
        QTest::newRow("1366x768 at 1.5") << QSize(911, 512);
    }

    void theMenuStaysInTheWindow()
    {
        QFETCH(QSize, size);
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), size);
        QVERIFY(real.ready);
        auto *top = real.window->findChild<TopBar *>();
        top->setWorkspaceName(QStringLiteral("a-workspace-whose-folder-has-a-long-name"), {});
        top->setReadOnly(true);
        for (const WindowLayout &layout : windowLayouts()) {
            real.window->applyLayout(layout.id);
            settleAll(real);
            for (const QWidget *part : top->findChildren<QWidget *>(Qt::FindDirectChildrenOnly)) {
                if (part->isVisible() && !part->isWindow())
                    QVERIFY2(top->rect().contains(part->geometry()),
                             qPrintable(QStringLiteral("%1: %2").arg(layout.id, part->accessibleName())));
            }
        }
    }

    void theStatusBarKeepsItsHeight()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        const QWidget *bar = real.window->statusBar();
        for (const char *layout : {"review", "demo"}) {
            real.window->applyLayout(QLatin1String(layout));
            settleAll(real);
            const int before = bar->height();
            const QRect centre = real.window->centralWidget()->geometry();
            for (auto *part : bar->findChildren<QToolButton *>()) {
                const bool wasHidden = part->isHidden();
                part->setText(QStringLiteral("1 problem"));
                for (const bool shown : {true, false}) {
                    part->setVisible(shown);
                    settleAll(real);
                    QCOMPARE(bar->height(), before);
                    QCOMPARE(real.window->centralWidget()->geometry(), centre);
                }
                part->setHidden(wasHidden);
            }
        }
    }

    void namesComeFirst_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::newRow("1600x1000") << QSize(1600, 1000);
        QTest::newRow("1366x768") << QSize(1366, 768);
    }

    /// Of metrics in the profile, and of what a lineage is compared with.
    void namesComeFirst()
    {
        QFETCH(QSize, size);
        const RealWindow real(QStringLiteral("gemm/sm90/K05"), size);
        QVERIFY(real.ready);
        const auto *table = real.find<QTableView>("profile");
        QStringList names;
        for (int row = 0; row < table->model()->rowCount(); ++row) {
            const QModelIndex index = table->model()->index(row, 0);
            const QString name = index.data().toString();
            names << name;
            const int margin = 2 * (table->style()->pixelMetric(QStyle::PM_FocusFrameHMargin) + 1);
            if (row < 3) // latency and its two rates
                QVERIFY2(table->fontMetrics().horizontalAdvance(name) + margin <= table->columnWidth(0),
                         qPrintable(name));
        }
        QVERIFY(names.contains(QStringLiteral("Effective bandwidth")));
        QCOMPARE(table->isColumnHidden(ProfileModel::LeftColumn), size.width() < 1600);
        // Where the parent's column has no room the header says where its figures are, whatever the step.
        for (const char *row : {"K01", "K02", "K03", "K04"}) {
            real.selection()->setLineage(QStringLiteral("gdn-chunk-fwd/sm90"), QLatin1String(row));
            settleAll(real);
            const QString header = table->model()->headerData(0, Qt::Horizontal).toString();
            QVERIFY2(table->isColumnHidden(ProfileModel::LeftColumn)
                         == header.contains(QStringLiteral("in tool tips")),
                     qPrintable(header));
            const QAbstractItemModel *figures = table->model();
            QVERIFY(figures->index(0, 0)
                        .data(Qt::ToolTipRole)
                        .toString()
                        .contains(figures->index(0, ProfileModel::LeftColumn).data().toString()));
        }
        real.selection()->setLineage(QStringLiteral("fmha-gqa/sm90"), QStringLiteral("K00"));
        settleAll(real);
        const auto *lineage = real.find<LineageView>("lineage");
        const QAbstractItemModel *model = lineage->model();
        const int reference = model->columnCount() - 1;
        QCOMPARE(model->headerData(reference, Qt::Horizontal).toString(), QStringLiteral("vs fa3"));
        QVERIFY(model->headerData(reference, Qt::Horizontal, Qt::ToolTipRole)
                    .toString()
                    .contains(QLatin1String("fa3/attention")));
    }
};

KLINEAGE_UI_TEST(TestFitJourney)
#include "tst_fitjourney.moc"
