// SPDX-License-Identifier: GPL-3.0-or-later
// Stall samples beside the lines: sums of folds and hunks, words, and what the view paints of them.
#include "core/files/sha256.h"
#include "tests/patience.h"
#include "ui/diff/diffspec.h"
#include "ui/diff/render/heattext.h"
#include "ui/diff/view/diffview.h"
#include "ui/highlight/codepalette.h"
#include "ui/style/theme.h"

#include <QScrollBar>
#include <QTemporaryDir>
#include <QTest>

#include <fstream>

using namespace klineage;
using namespace klineage::ui;

namespace {

std::string numbered(int from, int to)
{
    std::string text;
    for (int i = from; i < to; ++i)
        text += "line " + std::to_string(i) + ";\n";
    return text;
}

/// Lines 1 … 60; the right side has 21 changed, and two more after 40.
DocumentPtr document()
{
    return makeDocument(makeSideText(numbered(1, 61), Language::Plain),
                        makeSideText(numbered(1, 21) + "line 21, changed;\n" + numbered(22, 41)
                                         + "new;\nnew;\n" + numbered(41, 61),
                                     Language::Plain),
                        {});
}

gate::Trial trialOf(const std::vector<std::pair<int, std::int64_t>> &lines)
{
    gate::Trial trial;
    trial.surface = kernel::Surface::Cuda;
    trial.environment.device = "a device";
    for (const auto &[line, samples] : lines)
        trial.hotspots.push_back({"k", line, samples, {{"barrier", samples - 4}, {"selected", 4}}});
    return trial;
}

HeatSide sideOf(const std::vector<std::pair<int, std::int64_t>> &lines, const QString &label)
{
    return {gate::LineSamples(trialOf(lines)), label, QStringLiteral("a device"), {}};
}

/// Left: 40 % on line 5, 30 % on 21, 20 % on 41, 10 % on 60. Right: 30 % on 5, 10 % on 21, 50 % on 42 (new), 9.6 % on 62, 0.4 % on 50.
HeatPtr heat()
{
    return makeHeat(sideOf({{5, 400}, {21, 300}, {41, 200}, {60, 100}}, QStringLiteral("K00")),
                    sideOf({{5, 300}, {21, 100}, {42, 500}, {62, 96}, {50, 4}}, QStringLiteral("K01")));
}

} // namespace

class TestHeat : public QObject
{
    Q_OBJECT

    std::unique_ptr<DiffView> m_view;

    [[nodiscard]] int indexOf(Side side, int line) const
    {
        return m_view->rows().indexOf(m_view->rows().diffRowOf(side, line - 1), side);
    }

    /// The length of the painted bar in pixels, beside the row that has (or hides) a line; 0: none.
    [[nodiscard]] int barAt(Side column, Side side, int line) const
    {
        m_view->verticalScrollBar()->setValue(m_view->geometryOfRows().topOf(indexOf(side, line)) - 100);
        const ViewGeometry &geometry = m_view->geometryOfRows();
        const int left = geometry.column(column).heatLeft[std::size_t(side)];
        if (left < 0)
            return 0;
        const CodePalette colors = CodePalette::from(Theme::current());
        const int y = geometry.topOf(indexOf(side, line)) - m_view->verticalScrollBar()->value() + 2;
        const QImage image = m_view->viewport()->grab().toImage();
        if (image.pixelColor(left, y) != colors.heatEdge)
            return 0;
        int length = 0;
        while (image.pixelColor(left + heatEdge + length, y) == colors.heat)
            ++length;
        return length;
    }

private slots:
    void init()
    {
        QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin)")));
        m_view = std::make_unique<DiffView>();
        m_view->resize(1000, 700);
        m_view->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
        m_view->setDocument(document(), false);
        m_view->setHeat(heat());
    }

    void linesOfFoldsAndHunks()
    {
        const diff::Diff diff = document()->diff;
        const ViewRows rows(*document(), {});
        QCOMPARE(int(rows.at(0).kind), int(ViewRow::Kind::Fold)); // 1 … 17
        QCOMPARE(linesOfViewRow(diff, rows.at(0), Side::Left), (gate::LineSpan{1, 17}));
        QCOMPARE(diff.hunks.size(), std::size_t(2));
        const auto hunk = [&](std::size_t i, Side side) {
            return linesOfRows(diff, diff.hunks[i].firstRow, diff.hunks[i].rowCount, side);
        };
        QCOMPARE(hunk(0, Side::Left), (gate::LineSpan{21, 1}));
        QCOMPARE(hunk(0, Side::Right), (gate::LineSpan{21, 1}));
        QCOMPARE(hunk(1, Side::Left), gate::LineSpan{}); // added
        QCOMPARE(hunk(1, Side::Right), (gate::LineSpan{41, 2}));
        // Unified: a row shows one side of a change.
        ViewOptions unified;
        unified.unified = true;
        const ViewRows one(*document(), unified);
        const ViewRow &right = one.at(one.indexOf(diff.hunks[0].firstRow, Side::Right));
        QCOMPARE(linesOfViewRow(diff, right, Side::Right), (gate::LineSpan{21, 1}));
        QCOMPARE(linesOfViewRow(diff, right, Side::Left), gate::LineSpan{});
    }

    void hunksAreOrderedByWhatMoved()
    {
        const auto order = hunksByMoved(document()->diff, *heat());
        QCOMPARE(order.size(), std::size_t(2));
        QCOMPARE(order[0].hunk, 1);
        QCOMPARE(order[0].left, 0.0);
        QCOMPARE(order[0].right, 0.5);
        QCOMPARE(order[0].hottest, (SideLine{Side::Right, 41}));
        QCOMPARE(order[1].hunk, 0);
        QCOMPARE(order[1].moved(), 0.1 - 0.3);
        QCOMPARE(order[1].hottest, (SideLine{Side::Left, 20}));
        QVERIFY(hunksByMoved({}, *heat()).empty());
    }

    void wordsSayAgainstWhat()
    {
        const QString moved = movedInWords(hunksByMoved(document()->diff, *heat())[1], *heat());
        QVERIFY2(moved.startsWith(QStringLiteral(
                     "−20.0 points of the samples (30.0\u202f% → 10.0\u202f%) at line 21 of K00; ")),
                 qPrintable(moved));
        QVERIFY(moved.contains(QStringLiteral("two separate trials, each of its own kernel's total")));
        const QString line = heatInWords(heat()->side(Side::Left), {5, 1});
        QVERIFY2(
            line.startsWith(QStringLiteral(
                "40.0\u202f% (400 of 1000 stall samples of this trial) at line 5 of K00, a device. Of these "
                "99.0\u202f% waited for other warps at a barrier; 1.0\u202f% issued.")),
            qPrintable(line));
        const QString fold = heatInWords(heat()->side(Side::Left), {1, 17});
        QVERIFY2(fold.contains(QStringLiteral("at lines 1 to 17 of K00")), qPrintable(fold));
        QVERIFY(
            heatInWords(heat()->side(Side::Left), {6, 1}).startsWith(QStringLiteral("None of the 1000 ")));
        QVERIFY(heatInWords({}, {6, 1}).isEmpty());
        QCOMPARE(formatHeat(1), QStringLiteral("100\u202f%"));
    }

    void whatIsMissingSaysWhy()
    {
        lineage::RowRef row;
        row.id = "K07";
        row.file = "/nowhere/K07.cu";
        QVERIFY(heatSideOf(row, {}).why.contains(QStringLiteral("K07 has no recorded trial")));
        gate::Trial trial = trialOf({});
        row.trial = &trial;
        QVERIFY(heatSideOf(row, {}).why.startsWith(QStringLiteral("This trial kept no stall samples. ")));
        trial.surface = kernel::Surface::OpenCl;
        QVERIFY(heatSideOf(row, {}).why.contains(QStringLiteral("OpenCL offers none")));
        trial.verdict.evidence.push_back({"hotspots", "not read: no permission."});
        QVERIFY(heatSideOf(row, {}).why.endsWith(QStringLiteral("not read: no permission.")));
        trial = trialOf({{3, 10}});
        trial.candidate = "0123";
        QVERIFY(!heatSideOf(row, {}).samples.isEmpty());
        QVERIFY(!heatSideOf(row, "0123").samples.isEmpty());
        const HeatSide changed = heatSideOf(row, "4567");
        QVERIFY(changed.samples.isEmpty());
        QVERIFY(changed.why.startsWith(QStringLiteral("K07.cu has changed since its trial")));
    }

    void aSourceKnowsWhichFileItIs()
    {
        const QTemporaryDir folder;
        const QString file = folder.filePath(QStringLiteral("K00.cl"));
        std::ofstream(file.toStdString(), std::ios::binary) << "text\n";
        SideSpec spec;
        spec.file = file.toStdString();
        QCOMPARE(readSide(spec)->sha, files::sha256Hex("text\n"));
    }

    void barsAreAsLongAsTheirShares()
    {
        const int room = m_view->geometryOfRows().column(Side::Left).heatWidth - heatEdge;
        m_view->setFolding(false);
        QCOMPARE(barAt(Side::Right, Side::Right, 42), room); // 50 %, the hottest of both sides
        QCOMPARE(barAt(Side::Left, Side::Left, 5), qRound(room * 0.8));
        QCOMPARE(barAt(Side::Left, Side::Left, 6), 0);
        QCOMPARE(barAt(Side::Right, Side::Right, 50), 0); // below the floor
        m_view->setHeat(nullptr);
        QCOMPARE(barAt(Side::Left, Side::Left, 5), 0);
        QCOMPARE(m_view->geometryOfRows().column(Side::Left).heatLeft[0], -1);
    }

    void aFoldShowsTheSumOfWhatItHides()
    {
        const int room = m_view->geometryOfRows().column(Side::Left).heatWidth - heatEdge;
        QCOMPARE(int(m_view->rows().at(indexOf(Side::Left, 5)).kind), int(ViewRow::Kind::Fold));
        QCOMPARE(barAt(Side::Left, Side::Left, 5), qRound(room * 0.8));
        const QString words = m_view->heatOfRow(indexOf(Side::Left, 60), Side::Left);
        QVERIFY2(words.startsWith(QStringLiteral("10.0\u202f%")), qPrintable(words));
        const QPoint gutter(m_view->geometryOfRows().column(Side::Left).heatLeft[0] + 4, 4);
        QVERIFY(m_view->toolTipAt(gutter).contains(QStringLiteral("lines 1 to 17")));
        QVERIFY(m_view->toolTipAt(gutter).contains(QStringLiteral("Click to show")));
    }

    void unifiedShowsBothSides()
    {
        m_view->setUnified(true);
        m_view->setFolding(false);
        QVERIFY(barAt(Side::Left, Side::Left, 5) > 0);
        QVERIFY(barAt(Side::Left, Side::Right, 5) > 0);
        QVERIFY(barAt(Side::Left, Side::Left, 21) > 0);
        QVERIFY(barAt(Side::Left, Side::Right, 21) > 0);
        QVERIFY(indexOf(Side::Left, 21) != indexOf(Side::Right, 21));
    }

    void wrappedLinesHaveOneBar()
    {
        std::string wide = numbered(1, 5);
        for (int i = 0; i < 40; ++i)
            wide += "wide text ";
        m_view->setDocument(makeDocument(nullptr, makeSideText(wide + "\n", Language::Plain), {}), false);
        m_view->setWrapping(true);
        m_view->setHeat(makeHeat({}, sideOf({{5, 100}}, QStringLiteral("K00"))));
        const ViewGeometry &geometry = m_view->geometryOfRows();
        QVERIFY(geometry.heightOf(4) > geometry.rowHeight);
        QCOMPARE(barAt(Side::Right, Side::Right, 5), geometry.column(Side::Right).heatWidth - heatEdge);
        const QImage image = m_view->viewport()->grab().toImage();
        const int left = geometry.column(Side::Right).heatLeft[1];
        QVERIFY(image.pixelColor(left, geometry.topOf(4) + geometry.rowHeight + 3)
                != image.pixelColor(left, geometry.topOf(4) + 3));
        QCOMPARE(geometry.column(Side::Right).heatLeft[0], -1);
    }

    void theGutterIsKeptInPlace()
    {
        m_view->setFolding(false);
        m_view->resize(1000, 200);
        m_view->goToLine(Side::Right, 30);
        const int top = m_view->rowAt(0);
        m_view->setHeat(nullptr);
        QCOMPARE(m_view->rowAt(0), top);
        QVERIFY(m_view->toolTipAt({4, 4}).isEmpty());
        m_view->setHeat(heat());
        QCOMPARE(m_view->rowAt(0), top);
    }
};

QTEST_MAIN(TestHeat)
#include "tst_heat.moc"
