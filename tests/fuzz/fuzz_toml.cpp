// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::files;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        "string = \"a\"\ninteger = 3\nnumber = 1.5e3\nboolean = true\nstrings = [\"a\", 'b']\nintegers = [1, 2]\n"
        "map = { a = \"x\" }\n[[table]]\nstring = '''x\ny'''\n[[table]]\n[name.d]\nnumber = -0.0 # c\n",
        "a.b.c = 1\n\"quoted key\" = 0x1F\ndate = 2001-02-03T04:05:06Z\n", "s = 0o_)=\"ln[{\x1f\xc2\xb5 s"};
    target.words = {"string = ",
                    "integer = ",
                    "number = ",
                    "[[table]]\n",
                    "[name]\n",
                    "a.",
                    "a.a.a.a.a.a.a.a.a.a.a.a.a.a",
                    "[[[[[[[[[[[[[[[[[",
                    "{a={a={a={a=",
                    "'''",
                    "\"\"\"",
                    "'",
                    "\"",
                    "\\",
                    "\\uD800",
                    "\\U0010FFFF",
                    "#",
                    "\r\n",
                    "\n",
                    "=",
                    "nan",
                    "inf",
                    "1979-05-27",
                    "\xff",
                    "\xc3\xa9",
                    ",",
                    "]",
                    "}"};
    target.runs = 40'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const Result<TomlDocument> document = TomlDocument::parse(text, "fuzz.toml");
    if (!document) {
        requireLocated(document.error(), "fuzz.toml:");
        return 0;
    }
    const TomlTable root = document->root();
    TomlWriter writer;
    writer.string("string", root.string("string", ""));
    writer.integer("integer", root.integer("integer", 0));
    writer.number("number", root.number("number", 0));
    writer.boolean("boolean", root.boolean("boolean", false));
    writer.strings("strings", root.strings("strings"));
    writer.integers("integers", root.integers("integers"));
    writer.stringMap("map", root.stringMap("map"));
    for (const TomlTable &table : root.tables("table")) {
        writer.beginArrayTable("table");
        writer.string("string", table.string("string"));
    }
    if (Status status = document->finish(); !status) {
        requireLocated(status.error(), "fuzz.toml:");
        return 0;
    }
    const Result<TomlDocument> again = TomlDocument::parse(writer.text(), "written");
    require(again.has_value(), "what is written can be read");
    require(again->root().string("string") == root.string("string", ""), "strings are kept");
    require(again->root().number("number") == root.number("number", 0), "numbers are kept");
    require(again->root().stringMap("map") == root.stringMap("map"), "maps are kept");
    require(again->root().tables("table").size() == root.tables("table").size(), "tables are kept");
    return 0;
}
