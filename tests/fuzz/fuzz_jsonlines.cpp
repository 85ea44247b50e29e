// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/files/jsonlines.h"
#include "tests/fuzz/target.h"

#include <unistd.h>

using namespace klineage;
using namespace klineage::files;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {"{\"a\":1}\n{\"b\":[1,2]}\n", "{\"a\":1}\n\n  \n{\"torn\":", "{}", "\n\n",
                    "\"\\u0000\"\n\x01\n"};
    target.words = {"\n", "{}\n", "{", "}", "\"", "\\", "\r\n", "[1]", "null", "\n\n", "\xff"};
    target.runs = 4'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string text(reinterpret_cast<const char *>(data), size);
    const Result<Lines> lines = splitLines(text, "fuzz");
    require(lines.has_value(), "short lines are always split");
    int last = 0;
    for (const Line &line : lines->lines) {
        require(line.number > last, "numbers rise");
        require(line.text.find('\n') == std::string::npos && !line.text.empty(), "a line is one line");
        last = line.number;
    }
    require(!lines->tornTail || (lines->tornTail->number > last && text.ends_with(lines->tornTail->text)),
            "the torn tail is the end");

    // What an append makes of the same bytes, now and then: it waits for the disk.
    static int count = 0;
    if (++count % 64 != 0)
        return 0;
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("klineage-fuzz-" + std::to_string(::getpid()) + ".jsonl");
    require(writeFileAtomic(path, text).has_value(), "the file can be written");
    require(appendLine(path, "{\"new\":1}").has_value(), "a record can be appended to anything");
    const Result<Lines> after = readLines(path);
    require(after && !after->tornTail, "nothing is torn after an append");
    require(after->lines.size() == lines->lines.size() + 1, "an append adds one record and loses none");
    for (std::size_t i = 0; i < lines->lines.size(); ++i)
        require(after->lines[i].text == lines->lines[i].text, "an append changes no record");
    std::filesystem::remove(path);
    std::filesystem::remove(path.string() + ".torn");
    return 0;
}
