// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/writers.h"

#include <string_view>

namespace klineage::report {

namespace {

/// One line in which no character means anything but itself.
std::string markdownText(std::string_view text)
{
    constexpr std::string_view special = "\\`*_{}[]<>#|~&$!";
    std::string out;
    bool isFirst = true;
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
            out += ' ';
            continue;
        }
        // At the beginning of a line these would open a list, a heading or a rule.
        if (special.find(c) != std::string_view::npos || (isFirst && (c == '-' || c == '+' || c == '=')))
            out += '\\';
        out += c;
        isFirst = false;
    }
    return out;
}

/// A block of code by its indentation: no text can end it early.
std::string indented(std::string_view text)
{
    std::string out = "    ";
    for (const char c : text) {
        if (c == '\n')
            out += "\n    ";
        else if (static_cast<unsigned char>(c) >= ' ')
            out += c;
    }
    return out + '\n';
}

class MarkdownWriter
{
public:
    explicit MarkdownWriter(const Document &document)
    {
        m_text = "# " + markdownText(document.title) + "\n\n";
        if (!document.subtitle.empty())
            m_text += markdownText(document.subtitle) + "\n\n";
        for (const Block &block : document.blocks)
            std::visit(*this, block);
    }

    void operator()(const Heading &heading) { m_text += "## " + markdownText(heading.text) + "\n\n"; }
    void operator()(const Paragraph &paragraph) { m_text += markdownText(paragraph.text) + "\n\n"; }
    void operator()(const Figure &) {}

    void operator()(const Commands &commands)
    {
        for (const Commands::Line &line : commands.lines)
            m_text += markdownText(line.purpose) + "\n\n" + indented(line.text) + "\n";
    }

    void operator()(const Facts &facts)
    {
        for (const auto &[name, value] : facts.entries)
            m_text += "- **" + markdownText(name) + ":** " + markdownText(value) + '\n';
        m_text += '\n';
    }

    void operator()(const Table &table)
    {
        m_text += '|';
        for (const Column &column : table.columns)
            m_text += ' ' + markdownText(column.heading) + " |";
        m_text += "\n|";
        for (const Column &column : table.columns)
            m_text += column.isFigure ? "---:|" : "---|";
        m_text += '\n';
        for (const auto &row : table.rows) {
            m_text += '|';
            for (const std::string &cell : row)
                m_text += ' ' + markdownText(cell) + " |";
            m_text += '\n';
        }
        m_text += '\n';
    }

    [[nodiscard]] std::string take() { return std::move(m_text); }

private:
    std::string m_text;
};

} // namespace

std::string asMarkdown(const Document &document)
{
    std::string text = MarkdownWriter(document).take();
    text.pop_back(); // blocks end with a blank line; the file with a line
    return text;
}

} // namespace klineage::report
