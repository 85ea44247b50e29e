// SPDX-License-Identifier: GPL-3.0-or-later
//
// The text is read statement by statement: up to `;`, up to `:` of a label, up to the brace that opens or closes a body; `.loc`, `.file`
// and their like end with their line. `.file` comes last in what NVRTC writes, so a first pass over the lines collects it.
#include "ui/machine/code/ptx.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

namespace klineage::ui {

namespace {

/// file, line, column of a `.loc`.
using Place = std::array<int, 3>;

bool isBlank(char c)
{
    return static_cast<unsigned char>(c) <= ' ';
}

std::string_view stripped(std::string_view text)
{
    while (!text.empty() && isBlank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && isBlank(text.back()))
        text.remove_suffix(1);
    return text;
}

std::string_view nextWord(std::string_view &rest)
{
    rest = stripped(rest);
    std::size_t end = 0;
    while (end < rest.size() && !isBlank(rest[end]) && rest[end] != ',')
        ++end;
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), std::max<std::size_t>(end, rest.empty() ? 0 : 1)));
    return word;
}

bool readInt(std::string_view text, int &value)
{
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && value >= 0;
}

bool readPlace(std::string_view &rest, Place &place)
{
    return std::all_of(place.begin(), place.end(),
                       [&rest](int &part) { return readInt(nextWord(rest), part); });
}

/// Numbers of the `.file` directives that name the candidate.
std::set<int> ownFiles(std::string_view text, const std::string &file)
{
    std::set<int> own;
    const auto name = std::filesystem::path(file).filename();
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = stripped(text.substr(begin, end - begin));
        begin = end + 1;
        int number = 0;
        if (nextWord(line) != ".file" || !readInt(nextWord(line), number))
            continue;
        const std::size_t open = line.find('"');
        const std::size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
        if (close != std::string_view::npos
            && std::filesystem::path(line.substr(open + 1, close - open - 1)).filename() == name)
            own.insert(number);
    }
    return own;
}

/// The name of the function that a header declares: the word before the parenthesis of its parameters.
std::string functionName(std::string_view header)
{
    std::size_t at = header.find(".entry");
    std::size_t skipped = 6;
    if (at == std::string_view::npos) {
        at = header.find(".func");
        skipped = 5;
    }
    if (at == std::string_view::npos)
        return {};
    std::string_view rest = stripped(header.substr(at + skipped));
    if (rest.starts_with('(')) // what it returns
        rest = stripped(rest.substr(std::min(rest.find(')'), rest.size() - 1) + 1));
    std::size_t end = 0;
    while (end < rest.size() && !isBlank(rest[end]) && rest[end] != '(')
        ++end;
    return std::string(rest.substr(0, end));
}

class PtxReader
{
public:
    PtxReader(std::string_view text, const std::string &file)
        : m_text(text)
        , m_file(file)
        , m_own(ownFiles(text, file))
    {}

    Result<std::vector<gate::ListedInstruction>> read()
    {
        while (m_at < m_text.size() && m_problem.empty())
            step();
        if (m_problem.empty() && m_depth > 0)
            m_problem = "it ends within a function";
        if (!m_problem.empty())
            return fail(ErrorCode::InvalidInput, "Cannot read the PTX of " + m_file + ", line "
                                                     + std::to_string(m_line) + ": " + m_problem + ".");
        return std::move(m_out);
    }

private:
    void step()
    {
        const std::string_view rest = m_text.substr(m_at);
        if (rest.starts_with("//"))
            return skip(std::min(rest.find('\n'), rest.size()));
        if (rest.starts_with("/*"))
            return skip(rest.find("*/") == std::string_view::npos ? rest.size() : rest.find("*/") + 2);
        if (rest.front() == '"' && m_sectionDepth == 0)
            return keep(rest.find('"', 1) == std::string_view::npos ? rest.size() : rest.find('"', 1) + 1);
        if (m_sectionDepth > 0 ? rest.front() != '{' && rest.front() != '}'
                               : m_statement.empty() && isBlank(rest.front()))
            return skip(1);
        if (m_statement.empty() && lineDirective(rest))
            return;
        switch (rest.front()) {
        case ';':
            return endStatement();
        case '{':
            return openBrace();
        case '}':
            return closeBrace();
        case ':':
            if (m_depth > 0 && isLabelEnd(rest))
                return endLabel();
            break;
        default:
            break;
        }
        keep(1);
    }

    void skip(std::size_t count)
    {
        m_line += static_cast<int>(std::count(m_text.begin() + static_cast<long>(m_at),
                                              m_text.begin() + static_cast<long>(m_at + count), '\n'));
        m_at += count;
    }

    /// Into the statement, blanks as one space and what cannot be printed as '?'.
    void keep(std::size_t count)
    {
        if (m_statement.empty())
            m_firstLine = m_line;
        for (const char c : m_text.substr(m_at, count)) {
            if (!isBlank(c))
                m_statement += static_cast<unsigned char>(c) < 0x7f ? c : '?';
            else if (!m_statement.empty() && m_statement.back() != ' ')
                m_statement += ' ';
        }
        skip(count);
        if (m_statement.size() > maxPtxStatementBytes)
            m_problem = "a statement is longer than " + std::to_string(maxPtxStatementBytes) + " bytes";
    }

    bool lineDirective(std::string_view rest)
    {
        if (rest.front() != '.')
            return false;
        const std::string_view line = rest.substr(0, rest.find('\n'));
        std::string_view words = line;
        const std::string_view word = nextWord(words);
        constexpr std::string_view directives[] = {".loc", ".file", ".version", ".target", ".address_size"};
        if (word == ".section") { // its brace follows
            skip(word.size());
            m_statement = word;
            return true;
        }
        if (std::find(std::begin(directives), std::end(directives), word) == std::end(directives))
            return false;
        if (word == ".loc")
            readLoc(words);
        skip(line.size());
        return true;
    }

    void readLoc(std::string_view words)
    {
        Place place{};
        if (!readPlace(words, place))
            return;
        int line = m_own.contains(place[0]) ? place[1] : 0;
        constexpr std::string_view mark = "inlined_at";
        const std::size_t inlined = words.find(mark);
        if (line == 0 && inlined != std::string_view::npos) {
            words.remove_prefix(inlined + mark.size());
            Place caller{};
            if (readPlace(words, caller)) {
                const auto known = m_lines.find(caller);
                line = m_own.contains(caller[0]) ? caller[1] : known != m_lines.end() ? known->second : 0;
            }
        }
        m_lines[place] = line;
        m_source = line;
    }

    void endStatement()
    {
        skip(1);
        const std::string_view text = stripped(m_statement);
        if (m_depth > 0 && m_operandDepth == 0 && !text.empty() && text.front() != '.')
            add(std::string(text));
        if (m_operandDepth == 0)
            m_statement.clear();
    }

    bool isLabelEnd(std::string_view rest) const
    {
        const bool isName = std::all_of(m_statement.begin(), m_statement.end(), [](unsigned char c) {
            return std::isalnum(c) || c == '_' || c == '$' || c == '%';
        });
        return !m_statement.empty() && isName && (rest.size() == 1 || rest[1] != ':');
    }
    void endLabel()
    {
        skip(1);
        add(m_statement + ':');
        m_statement.clear();
    }

    void openBrace()
    {
        if (m_depth > 0 || m_sectionDepth > 0) {
            if (m_sectionDepth > 0)
                ++m_sectionDepth;
            else if (stripped(m_statement).empty())
                ++m_depth;
            else
                ++m_operandDepth;
            return m_operandDepth > 0 ? keep(1) : skip(1);
        }
        m_kernel = functionName(m_statement);
        if (!m_kernel.empty()) {
            m_depth = 1;
            m_source = 0;
            m_lines.clear();
        } else {
            ++m_sectionDepth; // of a section, or an initializer
        }
        m_statement.clear();
        skip(1);
    }

    void closeBrace()
    {
        if (m_operandDepth > 0) {
            --m_operandDepth;
            return keep(1);
        }
        if (m_sectionDepth > 0) {
            --m_sectionDepth;
            m_statement.clear();
        } else if (m_depth > 0) {
            --m_depth;
            m_statement.clear();
        }
        skip(1);
    }

    void add(std::string text)
    {
        if (m_out.size() >= maxCodeRows) {
            m_problem = "it has more than " + std::to_string(maxCodeRows) + " instructions";
            return;
        }
        gate::ListedInstruction &made = m_out.emplace_back();
        made.kernel = m_kernel;
        made.offset = static_cast<std::uint64_t>(m_firstLine);
        made.line = m_source;
        made.text = std::move(text);
    }

    std::string_view m_text;
    std::string m_file;
    std::set<int> m_own;
    std::map<Place, int> m_lines; ///< of the candidate, by the `.loc` that was read
    std::size_t m_at = 0;
    int m_line = 1;
    int m_firstLine = 1; ///< of the statement
    int m_source = 0;
    int m_depth = 0;        ///< blocks of a function
    int m_sectionDepth = 0; ///< braces of what is no function
    int m_operandDepth = 0; ///< braces within a statement
    std::string m_statement;
    std::string m_kernel;
    std::string m_problem;
    std::vector<gate::ListedInstruction> m_out;
};

} // namespace

Result<std::vector<gate::ListedInstruction>> parsePtx(std::string_view text, const std::string &file)
{
    if (text.size() > maxPtxBytes)
        return fail(ErrorCode::InvalidInput, "Cannot read the PTX of " + file + ": it is longer than "
                                                 + std::to_string(maxPtxBytes) + " bytes.");
    return PtxReader(text, file).read();
}

} // namespace klineage::ui
