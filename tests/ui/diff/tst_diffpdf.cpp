// SPDX-License-Identifier: GPL-3.0-or-later
// The diff as PDF: every line that has text on the screen has it on paper, and nothing lies over it.
#include "tests/patience.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/diff/pdfmarks.h"
#include "ui/diff/view/diffview.h"
#include "ui/plots/plotexport.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QTest>

using namespace klineage;
using namespace klineage::ui;

namespace {

std::string numbered(int from, int to)
{
    std::string text;
    for (int i = from; i < to; ++i)
        text += "float value_" + std::to_string(i) + " = " + std::to_string(i) + ";\n";
    return text;
}

/// Every kind of row: equal, changed, added, removed, moved.
DocumentPtr document()
{
    const std::string moved = "void moved() {\n    first(line);\n    second(line);\n}\n";
    const std::string left = numbered(1, 6) + moved + numbered(6, 16) + "gone_line();\n" + numbered(16, 20);
    const std::string right = numbered(1, 4) + "float other_4 = 4;\n" + numbered(5, 16) + "new_line();\n"
                              + numbered(16, 20) + moved;
    diff::Options options;
    options.detectMoves = true;
    return makeDocument(makeSideText(left, Language::Plain), makeSideText(right, Language::Plain), options);
}

} // namespace

class TestDiffPdf : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { Theme::apply(*qApp, ThemeChoice::Light); }

    void noLineIsBlank_data()
    {
        QTest::addColumn<bool>("unified");
        QTest::addColumn<bool>("wrap");
        QTest::addColumn<bool>("dark");
        QTest::newRow("side by side") << false << false << false;
        QTest::newRow("unified") << true << false << false;
        QTest::newRow("wrapped") << false << true << false;
        QTest::newRow("dark") << false << false << true;
    }

    void noLineIsBlank()
    {
        QFETCH(bool, unified);
        QFETCH(bool, wrap);
        QFETCH(bool, dark);
        Theme::apply(*qApp, dark ? ThemeChoice::Dark : ThemeChoice::Light);
        DiffView view;
        view.resize(900, 700);
        view.show();
        QVERIFY(takeKeys(view));
        view.setFocus();
        view.setDocument(document(), false);
        view.setFolding(false);
        view.setUnified(unified);
        view.setWrapping(wrap);
        // What lies over a line: the current one, a selection, a match, a mark.
        QTest::keyClick(&view, Qt::Key_Down);
        QTest::keyClick(&view, Qt::Key_Down, Qt::ShiftModifier);
        view.setMatches(findInDocument(*view.document(), QStringLiteral("value_3")), 0);
        view.showLine(Side::Right, 6);

        const auto marks = test::pdfMarks(drawnAsPdf(view), view.height());
        QVERIFY2(marks.size() > 200, "the PDF cannot be read");
        const ViewGeometry &geometry = view.geometryOfRows();
        int checked = 0;
        for (int i = 0; i < view.rows().count(); ++i) {
            const ViewRow &row = view.rows().at(i);
            for (const Side side : {Side::Left, Side::Right}) {
                const bool isHere = row.kind == ViewRow::Kind::Both || !unified
                                    || (row.kind == ViewRow::Kind::Left) == (side == Side::Left);
                const int line = lineOf(view.document()->diff.rows[std::size_t(row.row)], side);
                if (!isHere || line < 0)
                    continue;
                const QString text = view.document()->side(side).text.text(line);
                const ColumnGeometry &column = geometry.column(side);
                const QRectF band(column.textLeft - 1, geometry.topOf(i), column.textWidth(),
                                  geometry.heightOf(i));
                int seen = 0;
                for (const test::PdfMark &mark : marks) {
                    if (mark.isGlyph && band.contains(mark.at))
                        ++seen;
                    else if (!mark.isGlyph && mark.fill.height() > geometry.rowHeight / 2.0
                             && mark.fill.intersected(band).width() > band.width() / 8)
                        seen = 0; // painted over
                }
                const qsizetype wanted = text.simplified().remove(u' ').size();
                QVERIFY2(seen >= std::min<qsizetype>(wanted, 6),
                         qPrintable(QStringLiteral("row %1: %2 of '%3'").arg(i).arg(seen).arg(text)));
                ++checked;
            }
        }
        QVERIFY(checked > 40);
    }
};

QTEST_MAIN(TestDiffPdf)
#include "tst_diffpdf.moc"
