// SPDX-License-Identifier: GPL-3.0-or-later
//
// Format numbers: what is read, what is refused, what is passed over and said, and what is written back.
#include "core/files/formatnumber.h"
#include "core/files/jsonreader.h"
#include "core/files/keptkeys.h"
#include "core/files/tomlreader.h"

#include <QtTest>

using namespace klineage;
using namespace klineage::files;

namespace {

struct Part {
    std::string id;
    std::int64_t size = 0;
};

struct Thing {
    std::string name;
    std::string note; ///< of the table [more]
    std::vector<Part> parts;
};

Result<Thing> readThing(const std::string &text)
{
    const Result<TomlDocument> document = TomlDocument::parse(text, "thing.toml");
    if (!document)
        return tl::unexpected(document.error());
    const TomlTable root = document->root();
    Thing thing;
    thing.name = root.string("name");
    if (const auto more = root.table("more"))
        thing.note = more->string("note");
    for (const TomlTable &part : root.tables("part"))
        thing.parts.push_back({part.string("id"), part.integer("size", 0)});
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return thing;
}

Result<std::string> readLine(const std::string &line)
{
    return parseJsonLine(line, "log:7", [](const nlohmann::json &value) {
        JsonReader reader(value, {});
        std::string name = reader.text("name");
        if (const auto *inner = reader.optionalObject("inner", 10)) {
            JsonReader nested(*inner, reader.pathOf("inner"));
            static_cast<void>(nested.optionalText("word"));
            nested.finish();
        }
        reader.finish();
        return name;
    });
}

constexpr const char *newer = R"(format = "1.3"
name = "a"
colour = "red"
shades = [1, 2.5, true, ["x", { deep = "y" }]]

[more]
note = "n"
weight = 3

[[part]]
id = "first"
"an odd key" = """
two
lines"""

[[part]]
id = "second"
size = 2
texture = { grain = "fine" }

[future]
anything = 1
)";

} // namespace

class TestFormatNumber : public QObject
{
    Q_OBJECT
private slots:
    void numbers_data();
    void numbers();
    void tomlFiles_data();
    void tomlFiles();
    void jsonRecords_data();
    void jsonRecords();
    void nobodyListens();
    void theInnermostListens();
    void sentences();
    void keysAreWrittenBack();
    void whatIsGoneTakesItsKeysAlong();
    void headsOfFiles();
    void whatCannotBeKept();
};

void TestFormatNumber::numbers_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("major"); // -1: none
    QTest::addColumn<int>("minor");
    QTest::newRow("whole") << "1" << 1 << 0;
    QTest::newRow("with a minor") << "2.17" << 2 << 17;
    QTest::newRow("zero minor") << "1.0" << 1 << 0;
    QTest::newRow("long") << "999999999.999999999" << 999999999 << 999999999;
    for (const char *text : {"", ".", "1.", ".1", "-1", "+1", "1.-1", "1.2.3", "1x", " 1", "01", "1.02",
                             "1e3", "9999999999", "one"})
        QTest::addRow("'%s'", text) << QString(text) << -1 << 0;
}

void TestFormatNumber::numbers()
{
    QFETCH(QString, text);
    QFETCH(int, major);
    QFETCH(int, minor);
    const auto number = parseFormatNumber(text.toStdString());
    QCOMPARE(number.has_value(), major >= 0);
    if (number)
        QCOMPARE(*number, (FormatNumber{major, minor}));
}

void TestFormatNumber::tomlFiles_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("problem"); // empty: it is read
    QTest::newRow("no number") << "name = 'a'"
                               << "";
    QTest::newRow("1") << "format = 1\nname = 'a'"
                       << "";
    QTest::newRow("a text") << "format = '1'\nname = 'a'"
                            << "";
    QTest::newRow("1.0") << "format = '1.0'\nname = 'a'"
                         << "";
    QTest::newRow("a newer minor") << "format = '1.9'\nname = 'a'"
                                   << "";
    QTest::newRow("a newer minor with its keys") << QString(newer) << "";
    QTest::newRow("a newer major")
        << "name = 'a'\nformat = 2\ncolour = 1"
        << "thing.toml:2:10: the format is 2; this program reads 1, a newer one is needed.";
    QTest::newRow("a newer major that lacks what was required")
        << "format = '3.1'"
        << "thing.toml:1:10: the format is 3.1; this program reads 1";
    QTest::newRow("zero") << "format = 0\nname = 'a'"
                          << "'0' is no number of a format";
    QTest::newRow("a number with a fraction") << "format = 1.1\nname = 'a'"
                                              << "is no number of a format";
    QTest::newRow("a word") << "format = 'new'\nname = 'a'"
                            << "'new' is no number of a format; this program reads 1.";
    QTest::newRow("unknown keys of this format") << "format = '1.0'\nname = 'a'\ncolour = 1"
                                                 << "the key 'colour' is unknown";
    QTest::newRow("unknown keys without a number") << "name = 'a'\ncolour = 1"
                                                   << "the key 'colour' is unknown";
    QTest::newRow("a newer minor with a wrong value") << "format = '1.1'\nname = 5\ncolour = 1"
                                                      << "'name' is an integer";
    QTest::newRow("a newer minor without what is required") << "format = '1.1'\ncolour = 1"
                                                            << "the key 'name' is missing";
}

void TestFormatNumber::tomlFiles()
{
    QFETCH(QString, text);
    QFETCH(QString, problem);
    const PassedOver passedOver;
    const Result<Thing> thing = readThing(text.toStdString());
    QVERIFY2(thing.has_value() == problem.isEmpty(), thing ? "it was read" : thing.error().message.c_str());
    if (!thing) {
        QVERIFY2(thing.error().message.find(problem.toStdString()) != std::string::npos,
                 thing.error().message.c_str());
        QVERIFY(passedOver.keys().empty());
    }
}

void TestFormatNumber::jsonRecords_data()
{
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("problem");
    QTest::addColumn<int>("passedOver");
    QTest::newRow("no number") << R"({"name": "a"})"
                               << "" << 0;
    QTest::newRow("1") << R"({"format": 1, "name": "a"})"
                       << "" << 0;
    QTest::newRow("a newer minor") << R"({"format": "1.2", "name": "a", "colour": 1, "b": {}})"
                                   << "" << 2;
    QTest::newRow("a newer major")
        << R"({"name": "a", "format": 2})"
        << "log:7:25: the format is 2; this program reads 1, a newer one is needed." << 0;
    QTest::newRow("a list") << R"({"name": "a", "format": [1]})"
                            << "'[1]' is no number of a format" << 0;
    QTest::newRow("unknown keys") << R"({"name": "a", "colour": 1})"
                                  << "unknown key 'colour'" << 0;
    QTest::newRow("inside an object") << R"({"format": "1.2", "name": "a", "inner": {"colour": 1}})"
                                      << "unknown key 'colour'" << 0;
    QTest::newRow("a number inside") << R"({"name": "a", "inner": {"format": 1}})"
                                     << "unknown key 'format'" << 0;
}

void TestFormatNumber::jsonRecords()
{
    QFETCH(QString, line);
    QFETCH(QString, problem);
    QFETCH(int, passedOver);
    const PassedOver listening;
    const Result<std::string> name = readLine(line.toStdString());
    QVERIFY2(name.has_value() == problem.isEmpty(), name ? "it was read" : name.error().message.c_str());
    if (!name)
        QVERIFY2(name.error().message.find(problem.toStdString()) != std::string::npos,
                 name.error().message.c_str());
    QCOMPARE(static_cast<int>(listening.keys().size()), passedOver);
}

/// Nothing is passed over that nobody could say.
void TestFormatNumber::nobodyListens()
{
    QVERIFY(!PassedOver::isListening());
    QVERIFY(readThing("format = '1.3'\nname = 'a'"));
    QVERIFY(!readThing(newer));
    QVERIFY(!readLine(R"({"format": "1.2", "name": "a", "colour": 1})"));
}

void TestFormatNumber::theInnermostListens()
{
    const PassedOver outer;
    {
        const PassedOver inner;
        QVERIFY(readLine(R"({"format": "1.2", "name": "a", "colour": 1})"));
        QCOMPARE(inner.keys().size(), std::size_t{1});
    }
    QVERIFY(outer.keys().empty());
    QVERIFY(readThing(newer));
    QCOMPARE(outer.keys().size(), std::size_t{6});
}

void TestFormatNumber::sentences()
{
    const PassedOver none;
    QCOMPARE(none.sentence("x"), std::string());
    const PassedOver one;
    QVERIFY(readLine(R"({"format": "1.2", "name": "a", "colour": 1})"));
    QVERIFY(readLine(R"({"format": "1.2", "name": "b", "colour": 2})"));
    QCOMPARE(
        one.sentence("log"),
        std::string(
            "log is of format 1.2, which is newer than this program: its key 'colour' is kept and not understood."));
    const PassedOver many;
    QVERIFY(readThing(newer));
    QCOMPARE(
        many.sentence("thing.toml"),
        std::string(
            "thing.toml is of format 1.3, which is newer than this program: its keys 'colour', 'shades', 'more.weight', 'part[0].an odd "
            "key', 'part[1].texture' and 1 more are kept and not understood."));
}

/// The program changed a value, put a part in front and one behind.
void TestFormatNumber::keysAreWrittenBack()
{
    const PassedOver passedOver;
    QVERIFY(readThing(newer));
    const Result<std::string> text = withKeptKeys(
        newer,
        "name = \"b\"\n\n[more]\nnote = \"n\"\n\n[[part]]\nid = \"zeroth\"\n\n[[part]]\nid = \"first\"\n\n"
        "[[part]]\nid = \"second\"\nsize = 2\n\n[[part]]\nid = \"third\"\n",
        passedOver);
    QVERIFY2(text, text ? "" : text.error().message.c_str());
    QCOMPARE(
        *text,
        std::string(
            "format = \"1.3\"\ncolour = \"red\"\nshades = [1, 2.5, true, [\"x\", { deep = \"y\" }]]\nfuture = { anything = 1 }\n"
            "name = \"b\"\n\n[more]\nweight = 3\nnote = \"n\"\n\n[[part]]\nid = \"zeroth\"\n\n[[part]]\n\"an odd key\" = "
            "\"\"\"\ntwo\nlines\"\"\"\nid = \"first\"\n\n[[part]]\ntexture = { grain = \"fine\" }\nid = \"second\"\nsize = 2\n\n"
            "[[part]]\nid = \"third\"\n"));
    // Nothing is lost by a second time, and it is read as before.
    const PassedOver again;
    QVERIFY(readThing(*text));
    QCOMPARE(again.keys().size(), passedOver.keys().size());
    QVERIFY(withKeptKeys(*text, *text, PassedOver()));
}

void TestFormatNumber::whatIsGoneTakesItsKeysAlong()
{
    const PassedOver passedOver;
    QVERIFY(readThing(newer));
    const Result<std::string> text =
        withKeptKeys(newer, "name = \"a\"\n\n[[part]]\nid = \"second\"\n", passedOver);
    QVERIFY(text);
    QVERIFY(text->find("an odd key") == std::string::npos);
    QVERIFY(text->find("weight") == std::string::npos);
    QVERIFY(text->find("[[part]]\ntexture = { grain = \"fine\" }\nid = \"second\"") != std::string::npos);
}

void TestFormatNumber::headsOfFiles()
{
    const PassedOver none;
    QCOMPARE(*withKeptKeys("name = 'a'", "name = \"b\"\n", none), std::string("name = \"b\"\n"));
    QCOMPARE(*withKeptKeys("format = 1\nname = 'a'", "name = \"b\"\n", none),
             std::string("format = 1\nname = \"b\"\n"));
    QCOMPARE(*withKeptKeys("format = 1\nname = 'a'", "format = 2\nname = \"b\"\n", none),
             std::string("format = 2\nname = \"b\"\n"));
    QCOMPARE(withFormat("name = \"b\"\n"), std::string("format = 1\nname = \"b\"\n"));
    const PassedOver some;
    QVERIFY(readThing("format = '1.1'\nname = 'a'\nx = 1"));
    QCOMPARE(*withKeptKeys("format = '1.1'\nname = 'a'\nx = 1", "format = 1\nname = \"b\"\n", some),
             std::string("format = \"1.1\"\nx = 1\nname = \"b\"\n"));
}

void TestFormatNumber::whatCannotBeKept()
{
    for (const char *text : {"format = '1.1'\nname = 'a'\nwhen = 2026-01-01",
                             "format = '1.1'\nname = 'a'\nlist = [[2026-01-01]]"}) {
        const PassedOver passedOver;
        QVERIFY(readThing(text));
        const Result<std::string> kept = withKeptKeys(text, "name = \"a\"\n", passedOver);
        QVERIFY(!kept);
        QVERIFY2(kept.error().message.find("of a newer format cannot be kept") != std::string::npos,
                 kept.error().message.c_str());
    }
}

QTEST_GUILESS_MAIN(TestFormatNumber)
#include "tst_formatnumber.moc"
