// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/common/uitest.h"
#include "ui/diff/render/anchor.h"
#include "ui/diff/render/find.h"
#include "ui/diff/render/selection.h"
#include "ui/diff/render/viewrows.h"
#include "ui/diff/view/geometry.h"

#include <QTest>

#include <random>

using namespace klineage;
using namespace klineage::ui;

namespace {

DocumentPtr documentOf(const std::string &left, const std::string &right, const diff::Options &options = {})
{
    return makeDocument(makeSideText(left, Language::Plain), makeSideText(right, Language::Plain), options);
}

std::string numbered(int from, int to, const std::string &prefix = "line ")
{
    std::string text;
    for (int i = from; i < to; ++i)
        text += prefix + std::to_string(i) + ";\n";
    return text;
}

/// A letter a row: B both, L left, R right, and the number of rows a fold hides.
QString sketch(const ViewRows &rows)
{
    QString text;
    for (int i = 0; i < rows.count(); ++i) {
        switch (rows.at(i).kind) {
        case ViewRow::Kind::Both:
            text += u'B';
            break;
        case ViewRow::Kind::Left:
            text += u'L';
            break;
        case ViewRow::Kind::Right:
            text += u'R';
            break;
        case ViewRow::Kind::Fold:
            text += QStringLiteral("(%1)").arg(rows.at(i).rowCount);
            break;
        }
    }
    return text;
}

std::string randomText(std::mt19937 &random, int lines)
{
    std::string text;
    for (int i = 0; i < lines; ++i)
        text += "value " + std::to_string(random() % 40) + "\n";
    return text;
}

} // namespace

class TestDiffModel : public UiTest
{
    Q_OBJECT

private slots:
    void folds()
    {
        const auto document =
            documentOf(numbered(0, 50), numbered(0, 20) + "int changed;\n" + numbered(21, 50));
        QCOMPARE(sketch(ViewRows(*document, {})), QStringLiteral("(17)BBBBBBB(26)"));
        QCOMPARE(sketch(ViewRows(*document, {}, {0})), QString(24, u'B') + QStringLiteral("(26)"));
        ViewOptions open;
        open.fold = false;
        QCOMPARE(ViewRows(*document, open).count(), 50);
    }

    void aSingleLineIsNotFolded()
    {
        // Seven unchanged lines between two changes: three and three stay, and the one between them too.
        const auto document = documentOf("int a = 1;\n" + numbered(0, 7) + "int b = 1;\n",
                                         "int a = 2;\n" + numbered(0, 7) + "int b = 2;\n");
        QCOMPARE(sketch(ViewRows(*document, {})), QString(9, u'B'));
    }

    void equalTextsAreNotFoldedAway()
    {
        const auto document = documentOf(numbered(0, 30), numbered(0, 30));
        QCOMPARE(ViewRows(*document, {}).count(), 30);
    }

    void unifiedPutsRemovedLinesFirst()
    {
        const auto document =
            documentOf("int a = 1;\nint b = 1;\nsame;\n", "int a = 2;\nint b = 2;\nint c;\nsame;\n");
        ViewOptions options;
        options.unified = true;
        const ViewRows rows(*document, options);
        QCOMPARE(sketch(rows), QStringLiteral("LLRRRB"));
        QCOMPARE(rows.indexOf(0, Side::Left), 0);
        QCOMPARE(rows.indexOf(0, Side::Right), 2);
        QCOMPARE(rows.indexOf(2, Side::Left), 4); // an added row has only its right line
        QCOMPARE(rows.indexOf(3, Side::Left), 5);
    }

    void aTextThatStandsAlone()
    {
        const auto document = makeDocument(nullptr, makeSideText(numbered(0, 12), Language::Plain), {});
        QVERIFY(document->isSingle());
        ViewOptions options;
        options.unified = true;
        QCOMPARE(sketch(ViewRows(*document, options)), QString(12, u'B'));
        QCOMPARE(ViewRows(*document, options).diffRowOf(Side::Right, 11), 11);
        QCOMPARE(ViewRows(*document, options).diffRowOf(Side::Left, 0), -1);
    }

    void aSideWithoutATextFacesTheOther()
    {
        const auto document = makeDocument(makeSideMessage(QStringLiteral("gone")),
                                           makeSideText("a\nb\n", Language::Plain), {});
        QVERIFY(document->diff.hunks.empty());
        QCOMPARE(int(document->diff.rows.size()), 2);
        QCOMPARE(document->diff.rows[1].leftLine, -1);
        QCOMPARE(document->diff.rows[1].rightLine, 1);
    }

    void everyRowIsSeenOnce()
    {
        std::mt19937 random(5);
        for (int round = 0; round < 300; ++round) {
            const auto document =
                documentOf(randomText(random, int(random() % 60)), randomText(random, int(random() % 60)));
            ViewOptions options;
            options.unified = random() % 2;
            options.fold = random() % 2;
            options.context = int(random() % 5);
            std::set<int> opened;
            if (random() % 2)
                opened.insert(0);
            const ViewRows rows(*document, options, opened);
            std::vector<int> left;
            std::vector<int> right;
            for (int i = 0; i < rows.count(); ++i) {
                const ViewRow &row = rows.at(i);
                for (int r = row.row; r < row.row + row.rowCount; ++r) {
                    const diff::Row &diffRow = document->diff.rows[std::size_t(r)];
                    if (row.kind == ViewRow::Kind::Fold)
                        QCOMPARE(int(diffRow.kind), int(diff::Row::Kind::Equal));
                    if (row.kind != ViewRow::Kind::Right && diffRow.leftLine >= 0) {
                        left.push_back(diffRow.leftLine);
                        QCOMPARE(rows.indexOf(r, Side::Left), i);
                        QCOMPARE(rows.diffRowOf(Side::Left, diffRow.leftLine), r);
                    }
                    if (row.kind != ViewRow::Kind::Left && diffRow.rightLine >= 0) {
                        right.push_back(diffRow.rightLine);
                        QCOMPARE(rows.indexOf(r, Side::Right), i);
                    }
                }
            }
            QVERIFY(std::is_sorted(left.begin(), left.end()) && std::is_sorted(right.begin(), right.end()));
            QCOMPARE(int(left.size()), document->left->text.count());
            QCOMPARE(int(right.size()), document->right->text.count());
        }
    }

    void headingOfAFold()
    {
        const TextLines text(
            "#define A 1\n__global__ void gemm(const float *a)\n{\n    int x = f(1);\nlabel:\n}\n");
        QCOMPARE(headingLine(text, 3), 1);
        QCOMPARE(headingLine(text, 0), -1);
    }

    void anchorInNeighbouringSteps()
    {
        const std::string k1 = numbered(0, 40);
        const std::string k2 = numbered(0, 10) + "inserted 1\ninserted 2\n" + numbered(10, 40);
        const std::string k3 = "new first\n" + k2;
        const auto step2 = documentOf(k1, k2);
        const auto step3 = documentOf(k2, k3);
        // Row 22 of step 2 is line 22 of K2, which is the left text of step 3.
        const auto forward = findAnchor(*step2, 22, *step3);
        QVERIFY(forward);
        QCOMPARE(int(forward->side), int(Side::Left));
        QCOMPARE(forward->line, 22);
        const auto back = findAnchor(*step3, 23, *step2);
        QVERIFY(back);
        QCOMPARE(int(back->side), int(Side::Right));
        QCOMPARE(back->line, 22);
    }

    void anchorInUnrelatedSteps()
    {
        const auto before = documentOf("x\n", "alpha beta\n" + numbered(0, 30, "word "));
        const auto after = documentOf("y\n", numbered(100, 140, "other ") + numbered(0, 30, "word "));
        const auto anchor = findAnchor(*before, 16, *after); // "word 15;"
        QVERIFY(anchor);
        QCOMPARE(after->side(anchor->side).text.line(anchor->line), std::string_view("word 15;"));
        QVERIFY(!findAnchor(*before, 3, *makeDocument(nullptr, makeSideMessage(QStringLiteral("none")), {})));
    }

    void find()
    {
        const auto document = documentOf("Alpha alpha\nsame alpha\n", "beta\nsame alpha\n");
        const FindResult any = findInDocument(*document, QStringLiteral("alpha"));
        QCOMPARE(int(any.matches.size()), 3); // two in the changed line, one in the equal row
        QCOMPARE(any.matches[1].begin, 6);
        QCOMPARE(int(findInDocument(*document, QStringLiteral("Alpha")).matches.size()), 1);
        QVERIFY(findInDocument(*document, QString()).matches.empty());
        const FindResult limited = findInDocument(*document, QStringLiteral("a"), {}, 2);
        QVERIFY(limited.truncated);
        QCOMPARE(int(limited.matches.size()), 2);
    }

    void selectionIsOfOneSide()
    {
        const auto document = documentOf("left a\nleft b\n", "right é\n\nright c");
        TextSelection selection{Side::Right, {2, 3}, {0, 6}}; // backwards
        QCOMPARE(selectedText(*document, selection), QStringLiteral("é\n\nrig"));
        selection = {Side::Left, {0, 0}, {99, 0}};
        QCOMPARE(selectedText(*document, selection), QStringLiteral("left a\nleft b\n"));
        QCOMPARE(selectedText(*document, {}), QString());
        const TextSelection word = wordAt(*document, Side::Right, {2, 2});
        QCOMPARE(selectedText(*document, word), QStringLiteral("right"));
    }

    void columnsDoNotOverlap()
    {
        const ViewGeometry split = ViewGeometry::make({1001, 600}, true, false, 123456, 7.2, 18);
        QVERIFY(split.column(Side::Left).rect.right() < split.column(Side::Right).rect.left());
        QCOMPARE(split.column(Side::Right).rect.right(), 1000);
        for (const ColumnGeometry &column : split.columns) {
            QVERIFY(column.numberRight < column.signLeft && column.signLeft < column.barLeft);
            QVERIFY(column.barLeft + changeBarWidth < column.textLeft);
        }
        const ViewGeometry unified = ViewGeometry::make({1001, 600}, false, true, 10, 7.2, 18);
        QVERIFY(unified.column(Side::Left).otherNumberRight > unified.column(Side::Left).numberRight);
        QCOMPARE(unified.column(Side::Left).rect, unified.column(Side::Right).rect);
    }
};

KLINEAGE_UI_TEST(TestDiffModel)
#include "tst_diffmodel.moc"
