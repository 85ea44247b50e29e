// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diff/diff.h"
#include "core/diff/tokens.h"

#include <QTest>

#include <random>

using namespace klineage::diff;

namespace {

/// The line with its spans in brackets.
QByteArray marked(std::string_view line, const std::vector<Span> &spans)
{
    QByteArray out;
    std::size_t at = 0;
    for (const Span &span : spans) {
        out += QByteArray(line.data() + at, qsizetype(std::size_t(span.begin) - at)) + '[';
        out += QByteArray(line.data() + span.begin, span.length) + ']';
        at = std::size_t(span.begin + span.length);
    }
    return out + QByteArray(line.data() + at, qsizetype(line.size() - at));
}

std::string unmarkedPart(std::string_view line, const std::vector<Span> &spans)
{
    std::string rest(line);
    for (auto span = spans.rbegin(); span != spans.rend(); ++span)
        rest.erase(std::size_t(span->begin), std::size_t(span->length));
    return rest;
}

} // namespace

class TestWordChanges : public QObject
{
    Q_OBJECT

private slots:
    void spans_data()
    {
        QTest::addColumn<QByteArray>("left");
        QTest::addColumn<QByteArray>("right");
        QTest::addColumn<QByteArray>("leftMarked");
        QTest::addColumn<QByteArray>("rightMarked");
        QTest::newRow("equal") << QByteArray("a b") << QByteArray("a b") << QByteArray("a b")
                               << QByteArray("a b");
        QTest::newRow("number") << QByteArray("int x = 16;") << QByteArray("int x = 32;")
                                << QByteArray("int x = [16];") << QByteArray("int x = [32];");
        QTest::newRow("inserted argument") << QByteArray("load(a, b);") << QByteArray("load(a, stage, b);")
                                           << QByteArray("load(a, b);") << QByteArray("load(a, [stage, ]b);");
        QTest::newRow("words are whole")
            << QByteArray("acc += tile_a[k];") << QByteArray("acc += tile_b[k];")
            << QByteArray("acc += [tile_a][k];") << QByteArray("acc += [tile_b][k];");
        QTest::newRow("one stretch, not three")
            << QByteArray("acc += g[row * H + h];") << QByteArray("acc += g[row * PITCH + lane];")
            << QByteArray("acc += g[row * [H + h]];") << QByteArray("acc += g[row * [PITCH + lane]];");
        QTest::newRow("indentation") << QByteArray("  x = y;") << QByteArray("      x = y;")
                                     << QByteArray("  x = y;") << QByteArray("  [    ]x = y;");
        QTest::newRow("nothing in common") << QByteArray("return;") << QByteArray("float4 v = *p;")
                                           << QByteArray("[return;]") << QByteArray("[float4 v = *p;]");
        QTest::newRow("umlauts are not split")
            << QByteArray("// halbe größe") << QByteArray("// halbe gräße") << QByteArray("// halbe [größe]")
            << QByteArray("// halbe [gräße]");
        QTest::newRow("from empty") << QByteArray("") << QByteArray("x") << QByteArray("")
                                    << QByteArray("[x]");
    }

    void spans()
    {
        QFETCH(QByteArray, left);
        QFETCH(QByteArray, right);
        const LineChanges changes = compareLines(left.toStdString(), right.toStdString());
        QTEST(marked(left.toStdString(), changes.left), "leftMarked");
        QTEST(marked(right.toStdString(), changes.right), "rightMarked");
    }

    void unmarkedPartsAreEqual()
    {
        static const std::vector<std::string> words{"acc", " ", "+",  "(", ")", "tile",
                                                    "[",   "]", "  ", "0", "é", ","};
        std::mt19937 random(99);
        for (int round = 0; round < 3000; ++round) {
            std::vector<std::string> tokens;
            for (unsigned i = random() % 30; i > 0; --i)
                tokens.push_back(words[random() % words.size()]);
            std::string left;
            std::string right;
            for (const std::string &token : tokens) {
                if (random() % 6 != 0)
                    left += token;
                if (random() % 6 != 0)
                    right += token;
            }
            const LineChanges changes = compareLines(left, right);
            // Bridged gaps are marked on one side and maybe not on the other, so compare without blanks and punctuation.
            const auto wordsOf = [](std::string text) {
                std::erase_if(text,
                              [](char c) { return std::ispunct(static_cast<unsigned char>(c)) || c == ' '; });
                return text;
            };
            QCOMPARE(wordsOf(unmarkedPart(left, changes.left)), wordsOf(unmarkedPart(right, changes.right)));
            std::int32_t end = 0;
            for (const Span &span : changes.right) {
                QVERIFY(span.begin >= end && span.length > 0);
                end = span.begin + span.length;
            }
            QVERIFY(end <= std::int32_t(right.size()));
        }
    }

    void longLinesAreComparedAsAWhole()
    {
        const std::string left(20001, 'a');
        const LineChanges changes = compareLines(left, "a");
        QCOMPARE(changes.left.size(), std::size_t(1));
        QCOMPARE(changes.left.front().length, 20001);
    }

    void tokensCoverTheLine()
    {
        const std::string line = "a_b1 += é*(c);\t";
        std::int32_t end = 0;
        for (const Token &token : tokenize(line)) {
            QCOMPARE(token.begin, end);
            end += token.length;
        }
        QCOMPARE(end, std::int32_t(line.size()));
    }
};

QTEST_GUILESS_MAIN(TestWordChanges)
#include "tst_wordchanges.moc"
