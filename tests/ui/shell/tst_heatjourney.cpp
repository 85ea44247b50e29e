// SPDX-License-Identifier: GPL-3.0-or-later
// Why is it faster: stall samples beside the lines of shipped lineages, and the changes in the order of what moved.
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/render/heattext.h"
#include "ui/diff/sideheader.h"
#include "ui/diff/view/diffview.h"
#include "ui/highlight/codepalette.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <QScrollBar>

#include <algorithm>
#include <cmath>

using namespace klineage;
using namespace klineage::ui;

namespace {

/// A window on a row, with hands for its diff.
struct HeatWindow : RealWindow {
    using RealWindow::RealWindow;

    [[nodiscard]] DiffPanel *panel() const
    {
        return qobject_cast<DiffPanel *>(window->panel(QStringLiteral("diff")));
    }
    [[nodiscard]] DiffView *view() const { return panel()->view(); }
    [[nodiscard]] const Document &document() const { return *view()->document(); }
    [[nodiscard]] QString header(Side side) const
    {
        return panel()->findChildren<SideHeader *>()[int(side)]->heading().samples;
    }
    [[nodiscard]] const gate::Trial &trial(Side side) const
    {
        const auto *lineage = window->workspace()->lineage(selection()->lineageKey());
        const auto step = lineage::findStep(*lineage, row().toStdString());
        return side == Side::Left ? *step->left->trial : *step->right.trial;
    }
    [[nodiscard]] qint64 total(Side side) const
    {
        qint64 sum = 0;
        for (const gate::Hotspot &spot : trial(side).hotspots)
            sum += spot.samples;
        return sum;
    }
    /// Share of the samples of a side that rows of the diff hold, line by line.
    [[nodiscard]] double share(Side side, int firstRow, int rowCount) const
    {
        qint64 sum = 0;
        for (int i = firstRow; i < firstRow + rowCount; ++i) {
            const int line = lineOf(document().diff.rows[std::size_t(i)], side) + 1;
            for (const gate::Hotspot &spot : trial(side).hotspots)
                sum += line > 0 && spot.line == line ? spot.samples : 0;
        }
        return double(sum) / double(total(side));
    }
    /// Whether a bar stands beside the row of the view.
    [[nodiscard]] bool hasBar(int row, Side column, Side side) const
    {
        const ViewGeometry &geometry = view()->geometryOfRows();
        const int left = geometry.column(column).heatLeft[std::size_t(side)];
        const int y = geometry.topOf(row) - view()->verticalScrollBar()->value() + 3;
        if (left < 0 || y < 0 || y >= view()->viewport()->height())
            return false;
        const QImage image = view()->viewport()->grab().toImage();
        return image.pixelColor(left, y) == CodePalette::from(Theme::current()).heatEdge;
    }
};

} // namespace

class TestHeatJourney : public UiTest
{
    Q_OBJECT

private slots:
    void theKeysAreCommands_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QString>("key");
        QTest::newRow("gutter") << "diff.heat"
                                << "S";
        QTest::newRow("most moved") << "diff.nextMoved"
                                    << "F7";
        QTest::newRow("back") << "diff.previousMoved"
                              << "Shift+F7";
    }

    void theKeysAreCommands()
    {
        QFETCH(QString, id);
        QFETCH(QString, key);
        const MainWindow window;
        const auto *entry = std::as_const(*window.actions()).find(id);
        QVERIFY(entry);
        QCOMPARE(entry->action->shortcut().toString(QKeySequence::PortableText), key);
        QVERIFY(window.actions()->conflicts(id, entry->action->shortcut()).isEmpty());
        const auto palette = commandEntries(*window.actions());
        QVERIFY(std::any_of(palette.begin(), palette.end(),
                            [&](const QuickEntry &shown) { return shown.title == entry->action->text(); }));
    }

    void theGutterShowsWhereTheTimeGoes_data()
    {
        QTest::addColumn<QString>("row");
        QTest::newRow("gemm") << "gemm/sm90/K05";
        QTest::newRow("conv2d-f16") << "conv2d-f16/sm90/K09";
    }

    void theGutterShowsWhereTheTimeGoes()
    {
        QFETCH(QString, row);
        const HeatWindow real(row);
        QVERIFY(real.ready);
        real.focus("lineage");
        QVERIFY(real.header(Side::Right).isEmpty());
        real.press(Qt::Key_S);
        for (const Side side : {Side::Left, Side::Right}) {
            const QString header = real.header(side);
            QVERIFY2(header.startsWith(formatCount(real.total(side))), qPrintable(header));
            // The hottest line of the side: gone to, its bar is painted, and the status bar says what it is.
            const gate::Hotspot &hottest = real.trial(side).hotspots.front();
            real.view()->goToLine(side, hottest.line - 1);
            QVERIFY(real.hasBar(real.view()->currentRow(), side, side));
            const QString share = formatHeat(double(hottest.samples) / double(real.total(side)));
            const QString words = real.view()->heatOfRow(real.view()->currentRow(), side);
            QVERIFY2(words.startsWith(share), qPrintable(words));
            QVERIFY2(words.contains(QStringLiteral("at line %1 of K").arg(hottest.line)), qPrintable(words));
            QVERIFY2(words.contains(QStringLiteral("NVIDIA H200")), qPrintable(words));
            const int x = real.view()->geometryOfRows().column(side).heatLeft[std::size_t(side)] + 5;
            const int y = real.view()->geometryOfRows().topOf(real.view()->currentRow())
                          - real.view()->verticalScrollBar()->value() + 3;
            QCOMPARE(real.view()->toolTipAt({x, y}), words);
            QVERIFY(real.view()->accessibleDescription().contains(words));
        }
        real.focus("diff");
        real.press(Qt::Key_J);
        real.press(Qt::Key_K); // back on the hottest line, as a person goes there
        QVERIFY2(real.said().contains(QStringLiteral("stall samples of this trial")),
                 qPrintable(real.said()));
        // Unified, the same line has its bar too; a fold has the sum of what it hides.
        real.press(Qt::Key_U);
        const int hottest = real.trial(Side::Right).hotspots.front().line - 1;
        real.view()->goToLine(Side::Right, hottest);
        QVERIFY(real.hasBar(real.view()->currentRow(), Side::Right, Side::Right));
        real.press(Qt::Key_U);
        for (int i = 0; i < real.view()->rows().count(); ++i) {
            const ViewRow &fold = real.view()->rows().at(i);
            if (fold.kind != ViewRow::Kind::Fold)
                continue;
            for (const Side side : {Side::Left, Side::Right}) {
                const double share = real.share(side, fold.row, fold.rowCount);
                const QString words = real.view()->heatOfRow(i, side);
                QVERIFY2(words.startsWith(share > 0 ? formatHeat(share) : QStringLiteral("None of the ")),
                         qPrintable(words));
            }
        }
        // It stays on from step to step, and goes with its key.
        real.press(Qt::Key_Right, Qt::ControlModifier);
        QVERIFY(real.settle());
        QVERIFY(real.header(Side::Right).startsWith(formatCount(real.total(Side::Right))));
        real.press(Qt::Key_S);
        QVERIFY(real.header(Side::Right).isEmpty());
        QVERIFY(!real.view()->heat());
    }

    void changesInTheOrderOfWhatMoved_data() { theGutterShowsWhereTheTimeGoes_data(); }

    void changesInTheOrderOfWhatMoved()
    {
        QFETCH(QString, row);
        const HeatWindow real(row);
        QVERIFY(real.ready);
        std::vector<double> moved; // by change, counted line by line
        for (const diff::Hunk &hunk : real.document().diff.hunks)
            moved.push_back(real.share(Side::Right, hunk.firstRow, hunk.rowCount)
                            - real.share(Side::Left, hunk.firstRow, hunk.rowCount));
        QVERIFY(moved.size() > 1);
        real.focus("lineage");
        double before = 2;
        for (std::size_t i = 0; i < moved.size(); ++i) {
            real.press(Qt::Key_F7);
            const double here = moved[std::size_t(real.view()->currentHunk())];
            QVERIFY(std::abs(here) <= before + 1e-12);
            before = std::abs(here);
            const QString said = real.said();
            const QString points = (here > 0 ? QStringLiteral("+") : QString()) + formatFixed(100 * here, 1);
            QVERIFY2(said.startsWith(points + QStringLiteral(" points of the samples (")), qPrintable(said));
            QVERIFY2(said.contains(QStringLiteral("two separate trials, each of its own kernel's total")),
                     qPrintable(said));
        }
        real.press(Qt::Key_F7);
        QVERIFY(real.said().contains(QStringLiteral("fewest samples moved")));
        const int last = real.view()->currentHunk();
        real.press(Qt::Key_F7, Qt::ShiftModifier);
        QVERIFY(real.view()->currentHunk() != last);
        QVERIFY(real.hasFocus("lineage"));
    }

    void theWalkShowsTheSourceFirst()
    {
        const HeatWindow real(QStringLiteral("gemm/sm90/K03"));
        QVERIFY(real.ready);
        real.panel()->setTab(DiffTab::Plan);
        QVERIFY(real.settle());
        real.focus("lineage");
        real.press(Qt::Key_F7);
        QVERIFY(real.settle());
        QCOMPARE(int(real.panel()->tab()), int(DiffTab::Source));
        QVERIFY2(real.said().contains(QStringLiteral("points of the samples")), qPrintable(real.said()));
    }

    void aLineageWithoutSamplesSaysSo()
    {
        const HeatWindow real(QStringLiteral("softmax/pocl/K01"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_S);
        for (const Side side : {Side::Left, Side::Right})
            QVERIFY2(real.header(side).startsWith(QStringLiteral("This trial kept no stall samples")),
                     qPrintable(real.header(side)));
        QCOMPARE(real.view()->geometryOfRows().column(Side::Right).heatLeft[1], -1);
        real.press(Qt::Key_F7);
        QVERIFY2(real.said().contains(QStringLiteral("K00: This trial kept no stall samples")),
                 qPrintable(real.said()));
    }

    void theFirstStateIsComparedWithNothing()
    {
        const HeatWindow real(QStringLiteral("gemm/sm90/K00"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_F7);
        QVERIFY2(real.said().contains(QStringLiteral("K00 is compared with nothing")),
                 qPrintable(real.said()));
        real.press(Qt::Key_S);
        const int hottest = real.trial(Side::Right).hotspots.front().line - 1;
        real.view()->goToLine(Side::Right, hottest);
        QVERIFY(real.hasBar(real.view()->currentRow(), Side::Right, Side::Right));
    }
};

KLINEAGE_UI_TEST(TestHeatJourney)
#include "tst_heatjourney.moc"
