// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/outline/codescan.h"

#include <algorithm>
#include <utility>

namespace klineage::kernel {

namespace {

constexpr std::size_t maxMacroTokens = 64; ///< a longer one is neither a constant nor a type

bool isWordStart(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool isCodeDigit(char c)
{
    return c >= '0' && c <= '9';
}

bool isBlank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

class Scanner
{
public:
    explicit Scanner(std::string_view code)
        : m_code(code)
    {}

    CodeScan scan()
    {
        while (m_at < m_code.size() && !m_result.isCut)
            step();
        return std::move(m_result);
    }

private:
    [[nodiscard]] char peek(std::size_t ahead = 0) const
    {
        return m_at + ahead < m_code.size() ? m_code[m_at + ahead] : '\0';
    }

    void step()
    {
        const char c = peek();
        if (c == '\n') {
            ++m_line;
            ++m_at;
            m_lineBegins = true;
        } else if (isBlank(c)) {
            ++m_at;
        } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
            m_at += peek(1) == '\n' ? 2 : 3;
            ++m_line;
        } else if (c == '/' && (peek(1) == '/' || peek(1) == '*')) {
            skipComment();
        } else if (c == '#' && m_lineBegins) {
            directive();
        } else {
            m_lineBegins = false;
            const CodeToken token = next();
            if (m_skipping == 0)
                add(token);
        }
    }

    void add(const CodeToken &token)
    {
        if (m_result.tokens.size() == maxCodeTokens)
            m_result.isCut = true;
        else
            m_result.tokens.push_back(token);
    }

    void skipComment()
    {
        const bool isLine = peek(1) == '/';
        m_at += 2;
        if (isLine) {
            while (m_at < m_code.size() && (m_code[m_at] != '\n' || m_code[m_at - 1] == '\\')) {
                m_line += m_code[m_at] == '\n';
                ++m_at;
            }
            return;
        }
        const std::size_t end = std::min(m_code.find("*/", m_at), m_code.size());
        m_line += static_cast<int>(std::count(m_code.begin() + static_cast<std::ptrdiff_t>(m_at),
                                              m_code.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        m_at = std::min(end + 2, m_code.size());
    }

    /// The token here; something other than blanks and comments is.
    CodeToken next()
    {
        const std::size_t begin = m_at;
        const int line = m_line;
        auto kind = CodeToken::Kind::Sign;
        const char c = peek();
        if (isWordStart(c)) {
            kind = CodeToken::Kind::Word;
            while (isWordStart(peek()) || isCodeDigit(peek()))
                ++m_at;
            if (peek() == '"' && m_code[m_at - 1] == 'R') {
                kind = CodeToken::Kind::String;
                skipRawString();
            }
        } else if (isCodeDigit(c) || (c == '.' && isCodeDigit(peek(1)))) {
            kind = CodeToken::Kind::Number;
            while (isWordStart(peek()) || isCodeDigit(peek()) || peek() == '.' || peek() == '\'')
                ++m_at;
        } else if (c == '"' || c == '\'') {
            kind = CodeToken::Kind::String;
            skipString(c);
        } else {
            ++m_at;
        }
        return {kind, m_code.substr(begin, m_at - begin), line};
    }

    void skipString(char quote)
    {
        for (++m_at; m_at < m_code.size() && m_code[m_at] != '\n'; ++m_at) {
            if (m_code[m_at] == '\\')
                ++m_at;
            else if (m_code[m_at] == quote)
                break;
        }
        if (peek() == quote)
            ++m_at;
        m_at = std::min(m_at, m_code.size());
    }

    void skipRawString()
    {
        const std::size_t open = m_code.find('(', m_at);
        if (open == std::string_view::npos || open - m_at > 17) { // the standard's longest delimiter
            ++m_at;
            return;
        }
        const std::string closing = ')' + std::string(m_code.substr(m_at + 1, open - m_at - 1)) + '"';
        const std::size_t end = m_code.find(closing, open);
        const std::size_t stop = end == std::string_view::npos ? m_code.size() : end + closing.size();
        m_line += static_cast<int>(std::count(m_code.begin() + static_cast<std::ptrdiff_t>(m_at),
                                              m_code.begin() + static_cast<std::ptrdiff_t>(stop), '\n'));
        m_at = stop;
    }

    /// The tokens up to the end of the directive's line.
    std::vector<CodeToken> restOfLine()
    {
        std::vector<CodeToken> tokens;
        while (m_at < m_code.size() && peek() != '\n') {
            if (isBlank(peek())) {
                ++m_at;
            } else if (peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
                m_at += peek(1) == '\n' ? 2 : 3;
                ++m_line;
            } else if (peek() == '/' && (peek(1) == '/' || peek(1) == '*')) {
                skipComment();
            } else {
                tokens.push_back(next());
                m_directiveEnd = m_at;
            }
        }
        return tokens;
    }

    void directive()
    {
        const std::size_t begin = m_at++;
        const int line = m_line;
        const std::vector<CodeToken> words = restOfLine();
        if (words.empty())
            return;
        const std::string_view name = words[0].text;
        const std::string_view guard = std::exchange(m_guard, {});
        if (m_skipping > 0) {
            // Of what is left out only the nesting counts. The other side of `#if 0` is read.
            if (name.starts_with("if"))
                ++m_skipping;
            else if (name == "endif" || (m_skipping == 1 && (name == "else" || name == "elif")))
                --m_skipping;
        } else if (name == "if" && words.size() == 2 && words[1].is("0")) {
            m_skipping = 1;
        } else if (name == "ifndef" && words.size() > 1) {
            m_guard = words[1].text;
        } else if (name == "define" && words.size() > 2 && words.size() <= maxMacroTokens && words[1].isWord()
                   && m_result.macros.size() < maxCodeMacros) {
            // A parenthesis that touches the name makes parameters of it.
            if (words[2].text.data() == words[1].text.data() + words[1].text.size() && words[2].is("("))
                return;
            m_result.macros.push_back({words[1].text,
                                       {words.begin() + 2, words.end()},
                                       line,
                                       begin,
                                       m_directiveEnd,
                                       guard == words[1].text});
        }
    }

    std::string_view m_code;
    std::size_t m_at = 0;
    int m_line = 1;
    bool m_lineBegins = true;
    int m_skipping = 0; ///< conditionals open since an `#if 0`
    std::string_view m_guard;
    std::size_t m_directiveEnd = 0;
    CodeScan m_result;
};

} // namespace

CodeScan scanCode(std::string_view code)
{
    return Scanner(code).scan();
}

} // namespace klineage::kernel
