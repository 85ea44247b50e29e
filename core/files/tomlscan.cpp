// SPDX-License-Identifier: GPL-3.0-or-later
// Follows a text as a TOML parser does, without building anything: it knows keys, bare words, strings,
// comments and brackets. Where the text is no TOML it may lose its way, but only behind the place where the
// library stops.
#include "core/files/tomlscan.h"

#include <algorithm>
#include <vector>

namespace klineage::files {

namespace {

constexpr std::string_view byteOrderMark = "\xef\xbb\xbf";

bool isOutsideAscii(char c)
{
    return static_cast<unsigned char>(c) >= 0x80;
}

class Scan
{
public:
    Scan(std::string_view text, int maxNesting)
        : m_text(text)
        , m_maxNesting(static_cast<std::size_t>(maxNesting))
    {}

    std::optional<TomlFinding> run()
    {
        if (m_text.starts_with(byteOrderMark))
            m_at = byteOrderMark.size();
        while (m_at < m_text.size() && !m_finding) {
            const char c = m_text[m_at];
            if ((c == '"' || c == '\'') && beginsString()) {
                skipString(c);
                m_inWord = true;
            } else if (c == '#') {
                m_at = std::min(m_text.find('\n', m_at), m_text.size());
            } else {
                step(c);
                ++m_at;
            }
        }
        return m_finding;
    }

private:
    /// A quote in the middle of a word (`1"é`) is an error that the library finds only after looking at what
    /// follows; in keys it may follow a dot (`a."b"`).
    bool beginsString() const { return !m_inWord || (m_inKey && m_text[m_at - 1] == '.'); }

    void step(char c)
    {
        switch (c) {
        case '\n':
            m_inKey = m_inKey || m_brackets.empty();
            m_dots = 0;
            m_inWord = false;
            break;
        case ' ':
        case '\t':
        case '\r':
            m_inWord = false;
            break;
        case '=':
            m_inKey = false;
            m_dots = 0;
            m_inWord = false;
            break;
        case ',':
            m_inKey = !m_brackets.empty() && m_brackets.back() == '{';
            m_dots = 0;
            m_inWord = false;
            break;
        case '[':
        case '{':
            m_inKey = c == '{' || m_inKey; // a [header] is a key
            m_dots = 0;
            m_brackets.push_back(c);
            break;
        case ']':
        case '}':
            m_inKey = false;
            m_dots = 0;
            m_inWord = false;
            if (!m_brackets.empty())
                m_brackets.pop_back();
            break;
        default:
            m_inWord = true;
            m_dots += c == '.' ? 1 : 0;
            if (isOutsideAscii(c))
                report("there is a character outside ASCII; expected those in strings and comments only.");
        }
        if (m_dots > m_maxNesting || m_brackets.size() > m_maxNesting)
            report("values are nested more than " + std::to_string(m_maxNesting) + " deep.");
    }

    void report(std::string message)
    {
        if (!m_finding)
            m_finding = TomlFinding{m_at, std::move(message)};
    }

    void skipString(char quote)
    {
        const std::string triple(3, quote);
        const bool multiLine = m_text.substr(m_at).starts_with(triple);
        m_at += multiLine ? 3 : 1;
        while (m_at < m_text.size()) {
            const char c = m_text[m_at];
            if (c == '\\' && quote == '"') {
                skipEscape(multiLine);
            } else if (!multiLine && (c == quote || c == '\n')) {
                m_at += c == quote ? 1 : 0;
                return;
            } else if (multiLine && m_text.substr(m_at).starts_with(triple)) {
                m_at += 3;
                for (int extra = 0; extra < 2 && m_at < m_text.size() && m_text[m_at] == quote; ++extra)
                    ++m_at; // up to two quotes may end the content
                return;
            } else {
                ++m_at;
            }
        }
    }

    /// At a backslash of a "…" string. In a multi-line one it may continue the line: white space is skipped
    /// up to the next character.
    void skipEscape(bool multiLine)
    {
        ++m_at;
        const std::size_t next =
            multiLine ? std::min(m_text.find_first_not_of(" \t\r\n", m_at), m_text.size()) : m_at;
        const bool continuesLine = next > m_at;
        m_at = next;
        if (m_at < m_text.size() && isOutsideAscii(m_text[m_at]))
            report(
                "a character outside ASCII follows a backslash; expected it to be written as \\uXXXX there.");
        if (!continuesLine)
            ++m_at; // the escaped character itself, which may be a quote
    }

    std::string_view m_text;
    std::size_t m_maxNesting;
    std::size_t m_at = 0;
    std::size_t m_dots = 0;       // in the key or word at hand
    bool m_inKey = true;          // where a key may stand, or in a [header]
    bool m_inWord = false;        // in or right behind something that a quote cannot follow
    std::vector<char> m_brackets; // the open ones
    std::optional<TomlFinding> m_finding;
};

} // namespace

std::optional<TomlFinding> scanToml(std::string_view text, int maxNesting)
{
    return Scan(text, maxNesting).run();
}

} // namespace klineage::files
