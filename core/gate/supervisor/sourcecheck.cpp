// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/sourcecheck.h"

#include "core/device/opencl/refusedwords.h"

#include <algorithm>
#include <array>
#include <vector>

namespace klineage::gate {

namespace {

struct Line {
    int number = 1;
    std::string text;
};

/// Logical lines: spliced, without comments, literals emptied.
std::vector<Line> linesOf(std::string_view source)
{
    std::vector<Line> lines(1);
    int number = 1;
    char quote = 0;
    enum class Comment { None, ToEndOfLine, ToMark } comment = Comment::None;
    for (std::size_t i = 0; i < source.size(); ++i) {
        std::size_t after = i + 1; // a backslash splices also with blanks before the line's end
        while (source[i] == '\\' && after < source.size()
               && std::string_view(" \t\r").find(source[after]) != std::string_view::npos)
            ++after;
        if (source[i] == '\\' && after < source.size() && source[after] == '\n') {
            ++number;
            i = after;
            continue;
        }
        const char c = source[i];
        const char next = i + 1 < source.size() ? source[i + 1] : '\0';
        if (c == '\n') {
            ++number;
            if (comment == Comment::ToMark)
                continue;
            comment = Comment::None;
            quote = 0;
            lines.push_back({number, {}});
        } else if (comment == Comment::ToMark) {
            if (c == '*' && next == '/') {
                comment = Comment::None;
                ++i;
            }
        } else if (comment == Comment::ToEndOfLine) {
            continue;
        } else if (quote != 0) {
            if (c == '\\')
                ++i;
            else if (c == quote)
                quote = 0;
        } else if (c == '/' && (next == '/' || next == '*')) {
            comment = next == '/' ? Comment::ToEndOfLine : Comment::ToMark;
            lines.back().text += ' ';
            ++i;
        } else if (c == '"' || c == '\'') {
            quote = c;
            lines.back().text += c;
        } else {
            lines.back().text += c;
        }
    }
    return lines;
}

bool isWordCharacter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/// The next word of the line from `at` on, which moves behind it; empty when something else comes first.
std::string_view takeWord(std::string_view line, std::size_t &at)
{
    while (at < line.size() && std::string_view(" \t\v\f\r").find(line[at]) != std::string_view::npos)
        ++at;
    const std::size_t begin = at;
    while (at < line.size() && isWordCharacter(line[at]))
        ++at;
    return line.substr(begin, at - begin);
}

bool hasWord(std::string_view line, std::string_view word)
{
    for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
        const bool begins = at == 0 || !isWordCharacter(line[at - 1]);
        const bool ends = at + word.size() == line.size() || !isWordCharacter(line[at + word.size()]);
        if (begins && ends)
            return true;
    }
    return false;
}

template <typename List>
bool contains(const List &list, std::string_view word)
{
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

const char *complaintAbout(std::string_view line)
{
    static constexpr const char *noFiles = "file not found: an OpenCL candidate can include no files";
    if (hasWord(line, "dependency")) // of #pragma GCC and of _Pragma
        return noFiles;
    std::size_t at = line.find_first_not_of(" \t\v\f\r");
    if (at == std::string_view::npos)
        return nullptr;
    if (line[at] == '#')
        ++at;
    else if (line.substr(at, 2) == "%:")
        at += 2;
    else
        return nullptr;
    const std::string_view directive = takeWord(line, at);
    if (contains(std::array{"include", "include_next", "import", "embed"}, directive))
        return noFiles;
    if (directive == "pragma" && hasWord(line, "module"))
        return noFiles;
    if (contains(std::array{"define", "undef"}, directive)) {
        const std::string_view name = takeWord(line, at);
        if (contains(opencl::refusedWords, name) || contains(opencl::refusedQuestions, name))
            return "this name cannot be given another meaning";
    }
    return nullptr;
}

} // namespace

std::optional<std::string> refusedInOpenCl(std::string_view source)
{
    const auto say = [](int line, const char *what) {
        return "<candidate>:" + std::to_string(line) + ":1: error: " + what;
    };
    for (const std::string_view trigraph : {"?"
                                            "?=",
                                            "?"
                                            "?/"}) {
        if (const std::size_t at = source.find(trigraph); at != std::string_view::npos)
            return say(1
                           + static_cast<int>(std::count(
                               source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at), '\n')),
                       "trigraphs are not read");
    }
    if (source.find("_Pragma") != std::string_view::npos
        && source.find("dependency") != std::string_view::npos)
        return say(1, "file not found: an OpenCL candidate can depend on no files");
    for (const Line &line : linesOf(source)) {
        if (const char *complaint = complaintAbout(line.text))
            return say(line.number, complaint);
    }
    return std::nullopt;
}

} // namespace klineage::gate
