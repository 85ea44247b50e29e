// SPDX-License-Identifier: GPL-3.0-or-later
// What a libFuzzer program begins with: the seeds of its target lie in <program>.seeds, the words of the format in <program>.words, and
// both are added to its arguments. Given files to run, it runs those alone.
#include "tests/fuzz/seeds.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv);

namespace {

namespace fs = std::filesystem;

/// A line of libFuzzer's dictionary.
std::string quoted(const std::string &word)
{
    std::string line = "\"";
    for (const char c : word) {
        const auto byte = static_cast<unsigned char>(c);
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\x%02X", byte);
        line +=
            byte < 0x20 || byte > 0x7e || c == '"' || c == '\\' ? std::string(escaped) : std::string(1, c);
    }
    return line + "\"\n";
}

void write(const fs::path &path, const std::string &text)
{
    std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> prepared(const fs::path &program)
{
    const FuzzTarget target = fuzzTarget();
    const fs::path folder = program.string() + ".seeds";
    const fs::path words = program.string() + ".words";
    fs::create_directories(folder);
    std::size_t number = 0;
    for (const std::string &seed : collectSeeds(target))
        write(folder / ("seed-" + std::to_string(number++)), seed);
    std::string dictionary;
    for (const std::string &word : target.words)
        dictionary += quoted(word);
    write(words, dictionary);
    return {"-dict=" + words.string(), "-max_len=" + std::to_string(longestFuzzInput), folder.string()};
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static std::vector<std::string> kept;
    static std::vector<char *> arguments(*argv, *argv + *argc);
    for (const char *argument : arguments) {
        if (argument != arguments.front() && fs::is_regular_file(argument))
            return 0;
    }
    const auto given = [&](const std::string &added) {
        const std::string option = added.substr(0, added.find('=') + 1);
        return std::any_of(arguments.begin() + 1, arguments.end(), [&](const char *argument) {
            return option.empty() ? added == argument : std::string_view(argument).starts_with(option);
        });
    };
    kept = prepared(arguments.front());
    for (std::string &added : kept) {
        if (!given(added))
            arguments.push_back(added.data());
    }
    *argc = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    *argv = arguments.data();
    return 0;
}
