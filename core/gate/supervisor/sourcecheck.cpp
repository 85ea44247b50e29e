// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/sourcecheck.h"

#include "core/device/opencl/refusedwords.h"
#include "core/gate/supervisor/sourcetext.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace klineage::gate {

namespace {

struct Line {
    int number = 1;
    std::string text;
    std::vector<std::string> pragmas{}; ///< what stands in each _Pragma("…")
    std::string literals{};             ///< what stands in all of them
};

bool isWordCharacter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/// Whether what comes next is the literal of a _Pragma.
bool awaitsPragma(std::string_view text)
{
    const auto trim = [&] {
        while (!text.empty() && std::string_view(" \t\v\f\r").find(text.back()) != std::string_view::npos)
            text.remove_suffix(1);
    };
    trim();
    if (!text.ends_with('('))
        return false;
    text.remove_suffix(1);
    trim();
    constexpr std::string_view word = "_Pragma";
    return text.ends_with(word)
           && (text.size() == word.size() || !isWordCharacter(text[text.size() - word.size() - 1]));
}

/// Of a plain source: literals emptied.
std::vector<Line> linesOf(std::string_view source)
{
    std::vector<Line> lines(1);
    char quote = 0;
    std::string *pragma = nullptr;
    for (std::size_t i = 0; i < source.size(); ++i) {
        const char c = source[i];
        if (c == '\n') {
            quote = 0;
            lines.push_back({lines.back().number + 1, {}});
        } else if (quote != 0) {
            if (c == '\\')
                ++i;
            else if (c == quote)
                quote = 0;
            if (pragma && quote != 0)
                pragma->push_back(c);
            if (quote != 0)
                lines.back().literals += c;
        } else {
            lines.back().text += c;
            if (c != '"' && c != '\'')
                continue;
            quote = c;
            const bool isPragma =
                c == '"'
                && awaitsPragma(std::string_view(lines.back().text).substr(0, lines.back().text.size() - 1));
            pragma = isPragma ? &lines.back().pragmas.emplace_back() : nullptr;
        }
    }
    return lines;
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

std::size_t countOf(std::string_view line, std::string_view word)
{
    std::size_t count = 0;
    for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
        const bool begins = at == 0 || !isWordCharacter(line[at - 1]);
        const bool ends = at + word.size() == line.size() || !isWordCharacter(line[at + word.size()]);
        count += begins && ends ? 1 : 0;
    }
    return count;
}

bool hasWord(std::string_view line, std::string_view word)
{
    return countOf(line, word) > 0;
}

template <typename List>
bool contains(const List &list, std::string_view word)
{
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool isRefused(std::string_view name)
{
    return contains(opencl::refusedWords, name) || contains(opencl::refusedQuestions, name);
}

constexpr const char *noFiles = "file not found: an OpenCL candidate can include no files";

/// Those that say how loops and arithmetic are compiled. Others place data and code, give attributes or ask for files, and the
/// compiler takes their words as they stand, which no macro reaches.
const char *complaintAboutPragma(std::string_view words)
{
    std::size_t at = 0;
    const std::string_view first = takeWord(words, at);
    const std::string_view second = takeWord(words, at);
    if (contains(std::array{"unroll", "nounroll", "ivdep", "once"}, first))
        return nullptr;
    if (contains(std::array{"omp", "region", "endregion", "mark"},
                 first)) // without OpenMP the compiler reads none of them
        return nullptr;
    if (first == "OPENCL" && second == "EXTENSION") {
        const std::string_view name = takeWord(words, at);
        if (name.starts_with("cl_") || name == "all")
            return nullptr;
        // Those of the compiler's own lift rules of the language: no pointers to functions, for one.
        return "an OpenCL candidate may use extensions whose names begin with cl_";
    }
    if (first == "OPENCL" && second == "FP_CONTRACT")
        return nullptr;
    if (first == "STDC" && second == "FP_CONTRACT")
        return nullptr;
    if (first == "GCC" && contains(std::array{"unroll", "ivdep", "diagnostic"}, second))
        return nullptr;
    if (first == "clang" && contains(std::array{"loop", "fp", "diagnostic"}, second))
        return nullptr;
    if (second == "dependency" || hasWord(words, "module"))
        return noFiles;
    return "an OpenCL candidate may use the pragmas unroll, nounroll, ivdep, OPENCL EXTENSION, OPENCL FP_CONTRACT, STDC FP_CONTRACT, "
           "clang loop and clang fp, and no others";
}

/// What the compiler is told to take for an error (core/device/opencl/program.cpp) stays one. escapes: as many as quotes need.
const char *complaintAboutDiagnostic(std::string_view words, std::string_view named, std::ptrdiff_t escapes)
{
    std::size_t at = 0;
    takeWord(words, at);
    if (takeWord(words, at) != "diagnostic")
        return nullptr;
    for (const char *group : {"label", "gnu", "edantic", "everything"}) {
        if (named.find(group) != std::string_view::npos)
            return "this diagnostic cannot be changed";
    }
    return std::count(named.begin(), named.end(), '\\') > escapes ? "a diagnostic is named as it is"
                                                                  : nullptr;
}

const char *complaintAbout(const Line &whole)
{
    const std::string_view line = whole.text;
    for (const std::string &pragma : whole.pragmas) {
        if (const char *complaint = complaintAboutPragma(pragma))
            return complaint;
        if (const char *complaint = complaintAboutDiagnostic(pragma, pragma, 2))
            return complaint;
    }
    if (countOf(line, "_Pragma") != whole.pragmas.size())
        return "_Pragma takes a literal here, so that it can be read";
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
    if (!directive.empty() && directive.front() >= '0' && directive.front() <= '9')
        return "line markers are a preprocessor's to write"; // they can say that it is a system's header, of which nobody is told
    if (directive == "pragma") {
        const char *complaint = complaintAboutPragma(line.substr(at));
        return complaint ? complaint : complaintAboutDiagnostic(line.substr(at), whole.literals, 0);
    }
    if (contains(std::array{"define", "undef"}, directive)) {
        const std::string_view name = takeWord(line, at);
        if (isRefused(name))
            return "this name cannot be given another meaning";
    }
    return nullptr;
}

std::string say(int line, const std::string &what)
{
    return "<candidate>:" + std::to_string(line) + ":1: error: " + what;
}

/// Whether some of the words, one behind the other, are this name.
bool isMadeOf(std::string_view name, const std::set<std::string_view> &words)
{
    std::vector<bool> reached(name.size() + 1, false);
    reached[0] = true;
    for (std::size_t at = 0; at < name.size(); ++at) {
        for (std::size_t end = at + 1; reached[at] && end <= name.size(); ++end)
            reached[end] = reached[end] || words.contains(name.substr(at, end - at));
    }
    return reached[name.size()];
}

/// A raw literal, or a mark between digits: what looks like a comment behind one may be code.
bool quotesAreUnclear(std::string_view source)
{
    for (std::size_t at = source.find_first_of("'\""); at != std::string_view::npos;
         at = source.find_first_of("'\"", at + 1)) {
        if (at > 0 && (source[at] == '"' ? source[at - 1] == 'R' : isWordCharacter(source[at - 1])))
            return true;
    }
    return false;
}

} // namespace

std::optional<std::string> refusedInCuda(std::string_view source)
{
    const std::string joined = joinedSource(source);
    const std::string text = quotesAreUnclear(joined) ? joined : plainSource(source);
    const bool pastes = text.find("##") != std::string::npos || text.find("%:%:") != std::string::npos;
    std::set<std::string_view> words;
    int line = 1;
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::size_t end = at;
        while (end < text.size() && isWordCharacter(text[end]))
            ++end;
        if (end > at) {
            const std::string_view word = std::string_view(text).substr(at, end - at);
            words.insert(word);
            for (const std::string_view name : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
                if (word == name
                    || (pastes && name.find(word) != std::string_view::npos && isMadeOf(name, words)))
                    return say(line,
                               "a candidate is not told when it is compiled (" + std::string(name) + ")");
            }
            at = end - 1;
        } else if (text[at] == '\n') {
            ++line;
        }
    }
    return std::nullopt;
}

std::optional<std::string> refusedInOpenCl(std::string_view source, std::span<const kernel::Tunable> tunables)
{
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
    for (const kernel::Tunable &tunable : tunables) {
        if (isRefused(tunable.name))
            return say(1, "a tunable cannot have the name of a word that is refused");
    }
    const std::vector<Line> lines = linesOf(plainSource(source));
    const auto isIn = [&](std::string_view text) {
        return std::any_of(lines.begin(), lines.end(),
                           [&](const Line &line) { return line.text.find(text) != std::string::npos; });
    };
    const bool pastes = isIn("##") || isIn("%:%:");
    const auto hasAny = [&](std::initializer_list<const char *> words) {
        return std::any_of(lines.begin(), lines.end(), [&](const Line &line) {
            return std::any_of(words.begin(), words.end(),
                               [&](const char *word) { return hasWord(line.text, word); });
        });
    };
    const bool mayBegin = hasAny({"P", "Pr", "Pra", "Prag", "Pragm", "Pragma"}); // after a "_" of its own
    for (const Line &line : lines) {
        // No macro stands for _Pragma, so it must not be put together of pieces either.
        for (const char *piece : {"_", "_P", "_Pr", "_Pra", "_Prag", "_Pragm"}) {
            if (pastes && hasWord(line.text, piece) && (mayBegin || piece[1] != '\0'))
                return say(line.number, "this name cannot be used beside ##: it may become _Pragma");
        }
        if (const char *complaint = complaintAbout(line))
            return say(line.number, complaint);
    }
    return std::nullopt;
}

} // namespace klineage::gate
