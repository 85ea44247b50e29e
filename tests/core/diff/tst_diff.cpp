// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diff/diff.h"
#include "core/diff/lines.h"

#include <QTest>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace klineage::diff;

namespace {

std::string join(const std::vector<std::string> &lines)
{
    std::string text;
    for (const std::string &line : lines)
        text += line + '\n';
    return text;
}

/// Every row in a letter: = equal, ~ changed, - removed, + added; moved rows are < and >.
QByteArray sketch(const Diff &diff)
{
    QByteArray letters;
    for (const Row &row : diff.rows) {
        switch (row.kind) {
        case Row::Kind::Equal:
            letters += '=';
            break;
        case Row::Kind::Changed:
            letters += '~';
            break;
        case Row::Kind::Removed:
            letters += row.moved >= 0 ? '<' : '-';
            break;
        case Row::Kind::Added:
            letters += row.moved >= 0 ? '>' : '+';
            break;
        }
    }
    return letters;
}

/// What must hold for any two texts.
void checkInvariants(const std::string &left, const std::string &right, const Diff &diff,
                     bool ignoreWhitespace = false)
{
    const auto leftLines = splitLines(left);
    const auto rightLines = splitLines(right);
    std::int32_t leftAt = 0;
    std::int32_t rightAt = 0;
    for (const Row &row : diff.rows) {
        QVERIFY(row.leftLine >= 0 || row.rightLine >= 0);
        QCOMPARE(row.leftLine < 0, row.kind == Row::Kind::Added);
        QCOMPARE(row.rightLine < 0, row.kind == Row::Kind::Removed);
        if (row.leftLine >= 0)
            QCOMPARE(row.leftLine, leftAt++);
        if (row.rightLine >= 0)
            QCOMPARE(row.rightLine, rightAt++);
        if (row.kind == Row::Kind::Equal && !ignoreWhitespace)
            QCOMPARE(leftLines[std::size_t(row.leftLine)], rightLines[std::size_t(row.rightLine)]);
    }
    QCOMPARE(leftAt, std::int32_t(leftLines.size()));
    QCOMPARE(rightAt, std::int32_t(rightLines.size()));

    std::vector<bool> inHunk(diff.rows.size());
    std::int32_t end = 0;
    for (const Hunk &hunk : diff.hunks) {
        QVERIFY(hunk.rowCount > 0);
        QVERIFY(hunk.firstRow >= end);
        end = hunk.firstRow + hunk.rowCount;
        QVERIFY(diff.rows[std::size_t(hunk.firstRow)].kind != Row::Kind::Equal);
        QVERIFY(diff.rows[std::size_t(end - 1)].kind != Row::Kind::Equal);
        std::fill(inHunk.begin() + hunk.firstRow, inHunk.begin() + end, true);
    }
    for (std::size_t i = 0; i < diff.rows.size(); ++i)
        QVERIFY(inHunk[i] || diff.rows[i].kind == Row::Kind::Equal);
}

std::vector<std::string> randomLines(std::mt19937 &random, int count)
{
    static const std::vector<std::string> words{"acc",  "tile", "k0", "threadIdx.x", "+", "*",
                                                "smem", "[i]",  "=",  "float4",      "{", "}"};
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) {
        std::string line(random() % 3 * 2, ' ');
        for (unsigned w = random() % 6; w > 0; --w)
            line += words[random() % words.size()] + " ";
        lines.push_back(line);
    }
    return lines;
}

std::vector<std::string> randomlyEdited(std::mt19937 &random, std::vector<std::string> lines)
{
    for (unsigned edits = random() % 12; edits > 0; --edits) {
        const std::size_t at = lines.empty() ? 0 : random() % lines.size();
        const auto position = lines.begin() + std::ptrdiff_t(at);
        switch (random() % 5) {
        case 0:
            lines.insert(position, "inserted " + std::to_string(random() % 100));
            break;
        case 1:
            if (!lines.empty())
                lines.erase(position);
            break;
        case 2:
            if (!lines.empty())
                *position += " changed";
            break;
        case 3:
            if (!lines.empty())
                *position = "    " + *position;
            break;
        case 4: { // move a stretch
            const std::size_t count = std::min<std::size_t>(lines.size() - at, random() % 8);
            std::vector<std::string> moved(position, position + std::ptrdiff_t(count));
            lines.erase(position, position + std::ptrdiff_t(count));
            const std::size_t to = lines.empty() ? 0 : random() % lines.size();
            lines.insert(lines.begin() + std::ptrdiff_t(to), moved.begin(), moved.end());
            break;
        }
        }
    }
    return lines;
}

} // namespace

class TestDiff : public QObject
{
    Q_OBJECT

private slots:
    void sketches_data()
    {
        QTest::addColumn<QByteArray>("left");
        QTest::addColumn<QByteArray>("right");
        QTest::addColumn<QByteArray>("rows");
        QTest::addColumn<int>("hunks");
        QTest::newRow("both empty") << QByteArray("") << QByteArray("") << QByteArray("") << 0;
        QTest::newRow("equal") << QByteArray("a\nb\n") << QByteArray("a\nb\n") << QByteArray("==") << 0;
        QTest::newRow("from nothing") << QByteArray("") << QByteArray("a\nb\n") << QByteArray("++") << 1;
        QTest::newRow("to nothing") << QByteArray("a\nb\n") << QByteArray("") << QByteArray("--") << 1;
        QTest::newRow("insert") << QByteArray("a\nc\n") << QByteArray("a\nb\nc\n") << QByteArray("=+=") << 1;
        QTest::newRow("remove at end") << QByteArray("a\nb\n") << QByteArray("a\n") << QByteArray("=-") << 1;
        QTest::newRow("change") << QByteArray("a\nint x = 1;\nc\n") << QByteArray("a\nint x = 2;\nc\n")
                                << QByteArray("=~=") << 1;
        QTest::newRow("no final newline")
            << QByteArray("a\nb\n") << QByteArray("a\nb") << QByteArray("=~") << 1;
        QTest::newRow("two hunks") << QByteArray("a1\nword one\nword two\nword three\nb1\n")
                                   << QByteArray("a2\nword one\nword two\nword three\nb2\n")
                                   << QByteArray("~===~") << 2;
        QTest::newRow("a brace makes no second hunk")
            << QByteArray("int a = 1;\n}\nint b = 1;\n") << QByteArray("int a = 2;\n}\nint b = 2;\n")
            << QByteArray("~=~") << 1;
        QTest::newRow("bytes that are no UTF-8")
            << QByteArray("\xff\xfe\n\0x\n", 6) << QByteArray("\xff\xfd\n\0x\n", 6) << QByteArray("~=") << 1;
    }

    void sketches()
    {
        QFETCH(QByteArray, left);
        QFETCH(QByteArray, right);
        QFETCH(QByteArray, rows);
        QFETCH(int, hunks);
        const Diff diff = compare(left.toStdString(), right.toStdString());
        QVERIFY(!diff.cancelled);
        QCOMPARE(sketch(diff), rows);
        QCOMPARE(int(diff.hunks.size()), hunks);
        checkInvariants(left.toStdString(), right.toStdString(), diff);
    }

    void changedLineFacesItsCounterpart()
    {
        // Four lines became six; the loop header and the sum must face what they became.
        const std::string left =
            join({"begin", "for (int t = 0; t < CHUNK; ++t)", "acc += g[(row + t) * H + h];", "end"});
        const std::string right =
            join({"begin", "prefetch(ring, stage);", "__syncthreads();", "for (int t = 0; t < CHUNK; t += 4)",
                  "pipeline.wait();", "acc += g[(row + t) * PITCH + h];", "end"});
        const Diff diff = compare(left, right);
        checkInvariants(left, right, diff);
        QCOMPARE(sketch(diff), QByteArray("=++~+~="));
    }

    void largeBlockIsStillPaired()
    {
        // 400 × 400 lines: beyond the all-pairs limit. Every second line is new, the others changed in one place.
        std::vector<std::string> left;
        std::vector<std::string> right;
        for (int i = 0; i < 400; ++i) {
            const std::string name = "value" + std::to_string(i * 7919 % 4001);
            left.push_back("float " + name + " = load(a, " + std::to_string(i) + ");");
            right.push_back("barrier_number_" + std::to_string(i) + "();");
            right.push_back("half " + name + " = load(a, " + std::to_string(i) + ");");
        }
        const Diff diff = compare(join(left), join(right));
        checkInvariants(join(left), join(right), diff);
        int paired = 0;
        for (const Row &row : diff.rows)
            paired += row.kind == Row::Kind::Changed && row.rightLine == 2 * row.leftLine + 1;
        QVERIFY2(paired >= 390, qPrintable(QString::number(paired)));
    }

    void movedBlock()
    {
        const std::vector<std::string> block{"float maximum = reduce_max(row, width);",
                                             "float total = reduce_sum(row, width);",
                                             "store(out, maximum, total);"};
        std::vector<std::string> filler;
        for (int i = 0; i < 30; ++i)
            filler.push_back("filler line number " + std::to_string(i) + ";");
        std::vector<std::string> left = block;
        left.insert(left.end(), filler.begin(), filler.end());
        std::vector<std::string> right = filler;
        for (const std::string &line : block)
            right.push_back("    " + line); // moved and indented
        const Diff diff = compare(join(left), join(right));
        checkInvariants(join(left), join(right), diff);
        QCOMPARE(sketch(diff), QByteArray("<<<" + QByteArray(30, '=') + ">>>"));
        QCOMPARE(diff.rows.front().moved, diff.rows.back().moved);

        Options withoutMoves;
        withoutMoves.detectMoves = false;
        QCOMPARE(sketch(compare(join(left), join(right), withoutMoves)),
                 QByteArray("---" + QByteArray(30, '=') + "+++"));
    }

    void bracesAreNoMovedBlock()
    {
        std::vector<std::string> left{"}", "}", "}", "}"};
        std::vector<std::string> right;
        for (int i = 0; i < 20; ++i) {
            left.push_back("unique statement " + std::to_string(i));
            right.push_back(left.back());
        }
        right.insert(right.end(), {"}", "}", "}", "}"});
        for (const Row &row : compare(join(left), join(right)).rows)
            QCOMPARE(row.moved, -1);
    }

    void ignoreWhitespace()
    {
        const std::string left = "if (a)\n  b = c;\nd\n";
        const std::string right = "if (a)\n\t\tb  =  c;\ne\n";
        QCOMPARE(sketch(compare(left, right)), QByteArray("=~~"));
        Options options;
        options.ignoreWhitespace = true;
        const Diff diff = compare(left, right, options);
        QCOMPARE(sketch(diff), QByteArray("==~"));
        checkInvariants(left, right, diff, true);
    }

    void randomEditsReproduceBothTexts()
    {
        std::mt19937 random(20240607);
        for (int round = 0; round < 400; ++round) {
            const std::vector<std::string> original = randomLines(random, int(random() % 60));
            const std::vector<std::string> edited = randomlyEdited(random, original);
            std::string left = join(original);
            std::string right = join(edited);
            if (random() % 4 == 0 && !right.empty())
                right.pop_back();
            Options options;
            options.ignoreWhitespace = random() % 3 == 0;
            options.detectMoves = random() % 2 == 0;
            const Diff diff = compare(left, right, options);
            QVERIFY(!diff.cancelled);
            checkInvariants(left, right, diff, options.ignoreWhitespace);
            if (QTest::currentTestFailed())
                QFAIL(qPrintable(QStringLiteral("round %1").arg(round)));
        }
    }

    void movedIdsMatchOnBothSides()
    {
        std::mt19937 random(7);
        for (int round = 0; round < 200; ++round) {
            const std::vector<std::string> original = randomLines(random, 60);
            const std::vector<std::string> edited = randomlyEdited(random, original);
            const std::string left = join(original);
            const std::string right = join(edited);
            const auto leftLines = splitLines(left);
            const auto rightLines = splitLines(right);
            std::map<int, std::vector<std::string_view>> from;
            std::map<int, std::vector<std::string_view>> to;
            for (const Row &row : compare(left, right).rows) {
                if (row.moved < 0)
                    continue;
                if (row.leftLine >= 0)
                    from[row.moved].push_back(trimmed(leftLines[std::size_t(row.leftLine)]));
                else
                    to[row.moved].push_back(trimmed(rightLines[std::size_t(row.rightLine)]));
            }
            QVERIFY(from == to);
        }
    }

    void stopRequestMeansNotComputed()
    {
        std::stop_source source;
        source.request_stop();
        const Diff diff = compare("a\n", "b\n", {}, source.get_token());
        QVERIFY(diff.cancelled);
        QVERIFY(diff.rows.empty());
    }

    void oneMegabyteLine()
    {
        const std::string left(1 << 20, 'x');
        const std::string right = left + "y";
        const Diff diff = compare(left + "\nsame\n", right + "\nsame\n");
        QCOMPARE(sketch(diff), QByteArray("~="));
    }
};

QTEST_GUILESS_MAIN(TestDiff)
#include "tst_diff.moc"
