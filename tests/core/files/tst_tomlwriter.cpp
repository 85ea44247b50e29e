// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"

#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::files;

class TestTomlWriter : public QObject
{
    Q_OBJECT

private slots:
    void stringsReadBack_data();
    void stringsReadBack();
    void numbersReadBackExactly_data();
    void numbersReadBackExactly();
    void textIsCanonical();
    void expressionsKeepTheirText();
    void longListsBreak();
};

void TestTomlWriter::stringsReadBack_data()
{
    QTest::addColumn<QByteArray>("value");
    QTest::newRow("empty") << QByteArray("");
    QTest::newRow("quotes") << QByteArray(R"(a "b" 'c' \ d)");
    QTest::newRow("control") << QByteArray("\x01\x1f\x7f\t\r\b", 6);
    QTest::newRow("NUL") << QByteArray("a\0b", 3);
    QTest::newRow("lines") << QByteArray("first\nsecond\n");
    QTest::newRow("begins with a line break") << QByteArray("\n\nx");
    QTest::newRow("quotes in lines") << QByteArray("\"\"\"\n\"\"\"\"");
    QTest::newRow("backslash at line end") << QByteArray("a\\\n   b");
    QTest::newRow("carriage return") << QByteArray("a\r\nb\r");
    QTest::newRow("UTF-8") << QByteArray("τ → ∞ 🙂");
    QTest::newRow("comment") << QByteArray("# no comment");
}

void TestTomlWriter::stringsReadBack()
{
    QFETCH(QByteArray, value);
    const std::string text = value.toStdString();
    TomlWriter writer;
    writer.string("plain", text);
    writer.strings("list", {text, text});
    writer.stringMap("map", {{text, text}});
    const auto document = TomlDocument::parse(writer.text(), "t.toml");
    QVERIFY2(document, document ? "" : document.error().message.c_str());
    QCOMPARE(document->root().string("plain"), text);
    QCOMPARE(document->root().strings("list"), (std::vector<std::string>{text, text}));
    QCOMPARE(document->root().stringMap("map").at(text), text);
}

void TestTomlWriter::numbersReadBackExactly_data()
{
    QTest::addColumn<double>("value");
    for (const double value :
         {0.0, 1.0, -2.5, 0.1, 1e-5, 1.3e-6, 1e300, 5e-324, 123456789012345680.0, 1e22, -1e-7})
        QTest::addRow("%g", value) << value;
}

void TestTomlWriter::numbersReadBackExactly()
{
    QFETCH(double, value);
    TomlWriter writer;
    writer.number("n", value);
    const auto document = TomlDocument::parse(writer.text(), "t.toml");
    QVERIFY2(document, writer.text().c_str());
    QVERIFY(document->root().number("n") == value);
}

void TestTomlWriter::textIsCanonical()
{
    TomlWriter writer;
    writer.string("name", "x");
    writer.integer("n", -3);
    writer.number("r", 2);
    writer.boolean("b", true);
    writer.optionalString("absent", "");
    writer.optionalStrings("absent", {});
    writer.written("d", tomlInlineTable({{"kind", tomlString("bits")}, {"a b", "1"}}));
    writer.beginArrayTable("part");
    writer.strings("words", {"a"});
    writer.integers("values", {1, 2});
    writer.beginTable("last");
    writer.integerMap("axes", {{"M", 1}});
    QCOMPARE(writer.text(), std::string(R"(name = "x"
n = -3
r = 2.0
b = true
d = { kind = "bits", "a b" = 1 }

[[part]]
words = ["a"]
values = [1, 2]

[last]
axes = { M = 1 }
)"));
}

void TestTomlWriter::expressionsKeepTheirText()
{
    const std::vector<std::string> texts = {
        "4", "-7", "007", "+1", "9223372036854775807", "9223372036854775808", "N / 2", "1.5"};
    TomlWriter writer;
    writer.expressions("e", texts);
    QVERIFY(writer.text().find("[4, -7, \"007\", \"+1\", 9223372036854775807, \"9223372036854775808\"")
            != std::string::npos);
    const auto document = TomlDocument::parse(writer.text(), "t.toml");
    const std::vector<TomlText> read = document->root().texts("e");
    QCOMPARE(read.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i)
        QCOMPARE(read[i].text, texts[i]);
}

void TestTomlWriter::longListsBreak()
{
    TomlWriter writer;
    writer.strings("words", std::vector<std::string>(10, "0123456789"));
    for (const QString &line : QString::fromStdString(writer.text()).split('\n'))
        QVERIFY(line.size() <= 110);
    QCOMPARE(TomlDocument::parse(writer.text(), "t")->root().strings("words").size(), std::size_t{10});
}

QTEST_GUILESS_MAIN(TestTomlWriter)
#include "tst_tomlwriter.moc"
