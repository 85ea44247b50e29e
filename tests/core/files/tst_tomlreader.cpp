// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlreader.h"

#include <QTest>

using namespace klineage;
using namespace klineage::files;

/// A small schema that uses every getter once.
static Status readAll(const TomlTable &root)
{
    static_cast<void>(root.string("name"));
    static_cast<void>(root.string("title", "none"));
    static_cast<void>(root.integer("count", 1));
    static_cast<void>(root.number("ratio", 0.5));
    static_cast<void>(root.boolean("fast", false));
    static_cast<void>(root.choice<int>("color", {{"red", 1}, {"green", 2}}, 0));
    static_cast<void>(root.optionalText("size"));
    static_cast<void>(root.strings("words"));
    static_cast<void>(root.integers("values"));
    static_cast<void>(root.texts("grid"));
    static_cast<void>(root.stringMap("args"));
    static_cast<void>(root.integerMap("axes"));
    static_cast<void>(root.table("oracle"));
    for (const TomlTable &part : root.tables("part")) {
        static_cast<void>(part.string("id"));
        static_cast<void>(part.integer("n"));
    }
    for (const auto &named : root.namedTables("cases"))
        static_cast<void>(named.second.number("scale"));
    return {};
}

class TestTomlReader : public QObject
{
    Q_OBJECT

private slots:
    void valuesArriveAsWritten();
    void absentKeysGiveDefaults();
    void messages_data();
    void messages();
    void linesAreCountedFromFirstLine();
    void limits_data();
    void limits();
    void textOutsideAscii_data();
    void textOutsideAscii();
    void textThatBreaksTheLibraryIsRefused_data();
    void textThatBreaksTheLibraryIsRefused();
    void theFirstProblemInTheFileIsReported();
    void ownWordsAreReportedAtTheValue();
};

void TestTomlReader::valuesArriveAsWritten()
{
    const auto document = TomlDocument::parse(R"(
name = "x"
count = 3
ratio = 2
fast = true
color = "green"
size = 4
words = ["a", "b"]
values = [1, -2]
grid = ["N / 2", 7]
args = { a = "x", "b c" = "y" }
axes = { M = 4, N = 5 }
[[part]]
id = "p"
[[part]]
id = "q"
[cases.one]
scale = 1e3
)",
                                              "t.toml");
    QVERIFY(document);
    const TomlTable root = document->root();
    QCOMPARE(root.string("name"), std::string("x"));
    QCOMPARE(root.integer("count"), std::int64_t{3});
    QCOMPARE(root.number("ratio"), 2.0);
    QCOMPARE(root.boolean("fast"), true);
    QCOMPARE((root.choice<int>("color", {{"red", 1}, {"green", 2}})), 2);
    QCOMPARE(root.text("size").text, std::string("4"));
    QCOMPARE(root.strings("words"), (std::vector<std::string>{"a", "b"}));
    QCOMPARE(root.integers("values"), (std::vector<std::int64_t>{1, -2}));
    QCOMPARE(root.texts("grid").at(0).text, std::string("N / 2"));
    QVERIFY((root.texts("grid").at(1).position == TextPosition{10, 18}));
    QCOMPARE(root.stringMap("args").at("b c"), std::string("y"));
    QCOMPARE(root.integerMap("axes").at("N"), std::int64_t{5});
    QCOMPARE(root.tables("part").size(), std::size_t{2});
    QCOMPARE(root.tables("part").at(0).string("id"), std::string("p"));
    QCOMPARE(root.tables("part").at(1).string("id"), std::string("q"));
    QCOMPARE(root.tables("part").at(1).position().line, 15);
    QCOMPARE(root.namedTables("cases").at(0).first, std::string("one"));
    QCOMPARE(root.namedTables("cases").at(0).second.number("scale"), 1000.0);
    QVERIFY(document->finish());
}

void TestTomlReader::absentKeysGiveDefaults()
{
    const auto document = TomlDocument::parse("", "t.toml");
    const TomlTable root = document->root();
    QCOMPARE(root.string("title", "none"), std::string("none"));
    QCOMPARE(root.integer("count", 7), std::int64_t{7});
    QCOMPARE(root.number("ratio", 0.5), 0.5);
    QCOMPARE(root.boolean("fast", true), true);
    QCOMPARE((root.choice<int>("color", {{"red", 1}}, 9)), 9);
    QVERIFY(!root.optionalText("size"));
    QVERIFY(root.strings("words").empty());
    QVERIFY(root.tables("part").empty());
    QVERIFY(!root.table("oracle"));
    QVERIFY(!root.has("name"));
    QVERIFY(document->ok());
    QVERIFY(document->finish());
}

void TestTomlReader::messages_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const auto row = [](const char *name, const char *text, const char *message) {
        QTest::newRow(name) << text << message;
    };
    row("missing key", "", "t.toml:1:1: the key 'name' is missing.");
    row("missing in a table", "name = 'x'\n[[part]]\nid = 'p'", "t.toml:2:1: the key 'n' is missing.");
    row("misspelt key", "nmae = 'x'", "t.toml:1:1: the key 'nmae' is unknown; did you mean 'name'?");
    row("foreign key", "name = 'x'\n[oracle]\nzzz = 1\n", "t.toml:3:1: the key 'zzz' is unknown.");
    row("foreign key, listed", "name = 'x'\n[[part]]\nid = 'p'\nn = 1\nzzz = 1\n",
        "t.toml:5:1: the key 'zzz' is unknown; expected one of 'id' or 'n'.");
    row("string for integer", "name = 'x'\ncount = '3'",
        "t.toml:2:9: 'count' is a string; expected an integer.");
    row("fraction for integer", "name = 'x'\ncount = 3.5",
        "t.toml:2:9: 'count' is a number with a fraction; expected an integer.");
    row("integer for string", "name = 3", "t.toml:1:8: 'name' is an integer; expected a string.");
    row("date for string", "name = 2001-01-01", "t.toml:1:8: 'name' is a date or time; expected a string.");
    row("infinity", "name = 'x'\nratio = inf",
        "t.toml:2:9: 'ratio' is not finite; expected a finite number.");
    row("NaN", "name = 'x'\nratio = nan", "t.toml:2:9: 'ratio' is not finite; expected a finite number.");
    row("word for boolean", "name = 'x'\nfast = 'yes'",
        "t.toml:2:8: 'fast' is a string; expected true or false.");
    row("wrong word", "name = 'x'\ncolor = 'gren'",
        "t.toml:2:9: 'color' is 'gren'; expected one of 'red' or 'green'; did you mean 'green'?");
    row("far word", "name = 'x'\ncolor = 'mauve'",
        "t.toml:2:9: 'color' is 'mauve'; expected one of 'red' or 'green'.");
    row("list item", "name = 'x'\nwords = ['a', 3]",
        "t.toml:2:15: 'words[1]' is an integer; expected a string.");
    row("list of integers", "name = 'x'\nvalues = [1, 2.0]",
        "t.toml:2:14: 'values[1]' is a number with a fraction; expected an integer.");
    row("text item", "name = 'x'\ngrid = [true]",
        "t.toml:2:9: 'grid[0]' is a boolean; expected a string or an integer.");
    row("no list", "name = 'x'\nwords = 'a'", "t.toml:2:9: 'words' is a string; expected a list of strings.");
    row("no table list", "name = 'x'\n[part]\n",
        "t.toml:2:1: 'part' is a table; expected a list of tables, written [[part]].");
    row("map value", "name = 'x'\naxes = { M = 'x' }",
        "t.toml:2:14: 'axes.M' is a string; expected an integer.");
    row("no TOML", "name = \n", "t.toml:1:8: not TOML, *");
    row("unended string", "name = 'x\n", "t.toml:1:10: not TOML, *");
    row("twice", "name = 'x'\nname = 'y'\n", "t.toml:2:*");
}

void TestTomlReader::messages()
{
    QFETCH(QString, text);
    QFETCH(QString, message);
    const Result<TomlDocument> document = TomlDocument::parse(text.toStdString(), "t.toml");
    Status status = document ? readAll(document->root()) : tl::unexpected(document.error());
    if (status)
        status = document->finish();
    QVERIFY(!status);
    QCOMPARE(status.error().code, ErrorCode::InvalidInput);
    const QString actual = QString::fromStdString(status.error().message);
    if (message.endsWith('*')) // the rest is in the words of the TOML library's release
        QVERIFY2(actual.startsWith(message.chopped(1)), qPrintable(actual));
    else
        QCOMPARE(actual, message);
}

void TestTomlReader::linesAreCountedFromFirstLine()
{
    const auto document = TomlDocument::parse("a = 1\nb = [", "k.cu", 10);
    QVERIFY(!document);
    QVERIFY(QString::fromStdString(document.error().message).startsWith("k.cu:11:"));
    const auto unknown = TomlDocument::parse("\na = 1", "k.cu", 10);
    static_cast<void>(unknown->root());
    QVERIFY(QString::fromStdString(unknown->finish().error().message).startsWith("k.cu:11:1: "));
}

void TestTomlReader::limits_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("part");
    QTest::newRow("bytes") << QString(1 << 20, '#') + "##"
                           << "larger than the limit";
    QTest::newRow("dotted key") << QString("a.").repeated(200'000) + "a = 1"
                                << "nested more than 12 deep";
    QTest::newRow("dotted header") << "[" + QString("a.").repeated(200'000) + "a]"
                                   << "nested more than 12 deep";
    QTest::newRow("lists") << "a = " + QString("[").repeated(100'000) << "nested more than 12 deep";
    QTest::newRow("inline tables") << QString("a = { ").repeated(50'000) << "nested more than 12 deep";
    QTest::newRow("dots after a multi-line string")
        << "s = '''x''''\n" + QString("a.").repeated(200'000) + "a = 1"
        << "nested more than 12 deep";
    QTest::newRow("values") << "a = [" + QString("1,").repeated(200'000) + "]"
                            << "more than 100000 values";
}

void TestTomlReader::limits()
{
    QFETCH(QString, text);
    QFETCH(QString, part);
    const auto document = TomlDocument::parse(text.toStdString(), "t.toml");
    QVERIFY(!document);
    QVERIFY2(QString::fromStdString(document.error().message).contains(part),
             document.error().message.c_str());
}

void TestTomlReader::textOutsideAscii_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    QTest::newRow("string") << R"(a = "é")"
                            << "";
    QTest::newRow("literal") << R"(a = 'τ')"
                             << "";
    QTest::newRow("multi-line") << "a = \"\"\"\né\\\"é\"\"é\"\"\""
                                << "";
    QTest::newRow("multi-line literal") << R"(a = '''\é''é''''')"
                                        << "";
    QTest::newRow("comment") << "a = 1 # é \"\nb = 2 # '"
                             << "";
    QTest::newRow("keys") << "[\"é\".\"ü\"]\na.'é' = [\"é\", { \"é\" = 'é', b.\"é\" = 1 }]"
                          << "";
    QTest::newRow("byte order mark") << "\ufeffa = 1"
                                     << "";
    QTest::newRow("list over lines") << "a = [\n  'é',\n  'é' # é\n]\nb.'é' = 1"
                                     << "";
    const QString outside =
        "there is a character outside ASCII; expected those in strings and comments only.";
    QTest::newRow("bare key") << "é = 1"
                              << "t.toml:1:1: " + outside;
    QTest::newRow("bare value") << "a = é"
                                << "t.toml:1:5: " + outside;
    QTest::newRow("no-break space") << "a =\u00a01"
                                    << "t.toml:1:4: " + outside;
    QTest::newRow("quote in a word") << R"(a = 1"é")"
                                     << "t.toml:1:7: " + outside;
    QTest::newRow("quote after a dot") << R"(a = +h."é")"
                                       << "t.toml:1:9: " + outside;
    QTest::newRow("behind a string") << "a = 'x'é"
                                     << "t.toml:1:8: " + outside;
    QTest::newRow("continued line")
        << "a = \"\"\"\\\n  é\"\"\""
        << "t.toml:2:3: a character outside ASCII follows a backslash; expected it to be "
           "written as \\uXXXX there.";
}

void TestTomlReader::textOutsideAscii()
{
    QFETCH(QString, text);
    QFETCH(QString, message);
    const auto document = TomlDocument::parse(text.toStdString(), "t.toml");
    QCOMPARE(QString::fromStdString(document ? "" : document.error().message), message);
}

void TestTomlReader::textThatBreaksTheLibraryIsRefused_data()
{
    QTest::addColumn<QString>("text");
    QTest::newRow("header") << "a = 1\n[= \"b\"\nc = 1\n";
    QTest::newRow("list header") << "a = 1\n[[(]]\n";
    QTest::newRow("header at the end") << "a = 1\n[%";
}

void TestTomlReader::textThatBreaksTheLibraryIsRefused()
{
    QFETCH(QString, text);
    const auto document = TomlDocument::parse(text.toStdString(), "t.toml");
    QVERIFY(!document);
    QVERIFY2(document.error().message.starts_with("t.toml:2:"), document.error().message.c_str());
}

void TestTomlReader::theFirstProblemInTheFileIsReported()
{
    // Read out of order, with a dot-filled string that is no nesting, and an unknown key last.
    const auto document = TomlDocument::parse("a = 'x'\nb = 'y'\nc = '................'\nzz = 1\n", "t.toml");
    QVERIFY(document);
    static_cast<void>(document->root().integer("b"));
    static_cast<void>(document->root().integer("a"));
    static_cast<void>(document->root().string("c"));
    QVERIFY(!document->ok());
    QCOMPARE(document->finish().error().message,
             std::string("t.toml:1:5: 'a' is a string; expected an integer."));
}

void TestTomlReader::ownWordsAreReportedAtTheValue()
{
    const auto document = TomlDocument::parse("a = 1\nb = 2\n", "t.toml");
    static_cast<void>(document->root().integer("a"));
    static_cast<void>(document->root().integer("b"));
    document->root().fail("b", "b must be larger.");
    QCOMPARE(document->finish().error().message, std::string("t.toml:2:5: b must be larger."));
}

QTEST_GUILESS_MAIN(TestTomlReader)
#include "tst_tomlreader.moc"
