// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/writers.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

namespace klineage::report {

namespace {

constexpr const char *pageStyle = R"css(
@page { size: A4 landscape; margin: 14mm 12mm; }
body { margin: 2em auto; padding: 0 1.5em; max-width: 82em; color: #1b222b; background: #ffffff;
  font: 14px/1.5 Inter, "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums; }
h1 { margin: 0; font-size: 1.9em; line-height: 1.2; }
h2 { margin: 2.2em 0 0.6em; font-size: 1.15em; break-after: avoid; }
p { margin: 0.5em 0; max-width: 62em; }
.subtitle { color: #596472; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 0.9em; }
thead { display: table-header-group; }
th { text-align: left; color: #596472; font-weight: 600; border-bottom: 1.5px solid #8a95a3; vertical-align: bottom; }
th, td { padding: 0.3em 1em 0.3em 0; }
td { border-bottom: 1px solid #dde2e8; vertical-align: top; }
tr { break-inside: avoid; }
.figure { text-align: right; white-space: nowrap; }
th.figure { white-space: normal; }
.interval { color: #596472; }
.data { font-size: 0.85em; }
.data a { color: #1c5fa8; }
.facts { width: auto; margin: 0.8em 0; }
.facts th { font-weight: 400; white-space: nowrap; vertical-align: top; }
.facts th, .facts td { border-bottom: none; padding: 0.1em 1.5em 0.1em 0; overflow-wrap: anywhere; }
pre { margin: 0.4em 0 1em; padding: 0.6em 0.9em; background: #f5f6f8; border-left: 3px solid #b9c1cc; overflow-x: auto;
  white-space: pre-wrap; font: 0.86em/1.5 "JetBrains Mono", ui-monospace, Consolas, "DejaVu Sans Mono", monospace; }
figure { margin: 1em 0; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; }
figure text { font-family: Inter, "Helvetica Neue", Arial, sans-serif; }
figcaption { color: #596472; font-size: 0.9em; }
@media print { .data { display: none; } body { margin: 0; padding: 0; max-width: none; font-size: 8.5pt; } .wide { overflow: visible; } }
)css";

/// Text that XML takes: markup escaped, characters that XML has no place for left out.
std::string htmlText(std::string_view text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const std::string_view three = text.substr(i, 3);
        if (three == "\xef\xbf\xbe" || three == "\xef\xbf\xbf") {
            i += 2;
            continue;
        }
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        default:
            if (static_cast<unsigned char>(c) >= ' ')
                out += c;
            else if (c == '\n' || c == '\t')
                out += ' ';
        }
    }
    return out;
}

/// RFC 4648.
std::string base64(std::string_view bytes)
{
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        unsigned group = 0;
        for (std::size_t k = 0; k < 3; ++k)
            group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; ++k)
            out += i + k <= bytes.size() ? alphabet[group >> (18 - 6 * k) & 63u] : '=';
    }
    return out;
}

class HtmlWriter
{
public:
    HtmlWriter(const Document &document, const HtmlParts &parts)
        : m_parts(parts)
    {
        m_text = "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
                 "<meta charset=\"utf-8\"/>\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>"
                 + htmlText(document.title) + "</title>\n<style>"
                 + (parts.style.empty() ? std::string(pageStyle) : parts.style)
                 + "</style>\n</head>\n<body>\n<h1>" + htmlText(document.title) + "</h1>\n";
        if (!document.subtitle.empty())
            m_text += "<p class=\"subtitle\">" + htmlText(document.subtitle) + "</p>\n";
        for (const Block &block : document.blocks)
            std::visit(*this, block);
        m_text += "</body>\n</html>\n";
    }

    void operator()(const Heading &heading)
    {
        m_heading = heading.text;
        m_text += "<h2>" + htmlText(heading.text) + "</h2>\n";
    }
    void operator()(const Paragraph &paragraph) { m_text += "<p>" + htmlText(paragraph.text) + "</p>\n"; }

    void operator()(const Facts &facts)
    {
        m_text += "<table class=\"facts\">\n";
        for (const auto &[name, value] : facts.entries)
            m_text += "<tr><th>" + htmlText(name) + "</th><td>" + htmlText(value) + "</td></tr>\n";
        m_text += "</table>\n";
    }

    void operator()(const Table &table)
    {
        m_text += "<div class=\"wide\"><table" + m_parts.tableAttributes + ">\n<thead><tr>";
        for (const Column &column : table.columns)
            m_text += cell("th", column, column.heading);
        m_text += "</tr></thead>\n<tbody>\n";
        for (const auto &row : table.rows) {
            m_text += "<tr>";
            for (std::size_t i = 0; i < row.size(); ++i)
                m_text += cell("td", table.columns[i], row[i]);
            m_text += "</tr>\n";
        }
        m_text += "</tbody>\n</table></div>\n";
        if (m_parts.hasData)
            addData(table);
    }

    void operator()(const Commands &commands)
    {
        for (const Commands::Line &line : commands.lines)
            m_text += "<p>" + htmlText(line.purpose) + "</p>\n<pre>" + linesText(line.text) + "</pre>\n";
    }

    void operator()(const Figure &figure)
    {
        const std::string drawn = m_parts.drawn ? m_parts.drawn(figure) : std::string();
        if (!drawn.empty())
            m_text += "<figure>\n" + drawn + "\n<figcaption>" + htmlText(figure.caption)
                      + "</figcaption>\n</figure>\n";
    }

    [[nodiscard]] std::string take() { return std::move(m_text); }

private:
    /// The table as a file that is part of the page.
    void addData(const Table &table)
    {
        const std::string name = fileName();
        m_text += "<p class=\"data\"><a download=\"" + name + "\" href=\"data:text/csv;charset=utf-8;base64,"
                  + base64(asCsv(table)) + "\">" + name + "</a></p>\n";
    }

    /// After the section; told apart where it has several tables.
    std::string fileName()
    {
        std::string slug;
        for (const char c : m_heading) {
            if (std::isalnum(static_cast<unsigned char>(c)))
                slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            else if (!slug.empty() && slug.back() != '-')
                slug += '-';
        }
        while (!slug.empty() && slug.back() == '-')
            slug.pop_back();
        if (slug.empty())
            slug = "table";
        const int number = ++m_files[slug];
        return slug + (number > 1 ? "-" + std::to_string(number) : "") + ".csv";
    }

    static std::string cell(const char *tag, const Column &column, const std::string &text)
    {
        return std::string("<") + tag + (column.isFigure ? " class=\"figure\">" : ">")
               + (column.isFigure ? figureText(text) : htmlText(text)) + "</" + tag + '>';
    }

    /// As htmlText(), and its lines stay lines.
    static std::string linesText(std::string_view text)
    {
        std::string out;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            out += (begin > 0 ? "\n" : "") + htmlText(text.substr(begin, end - begin));
            begin = end + 1;
        }
        return out;
    }

    /// How sure a figure is stands below it: "(1.480–1.484)", "± 0.05 %".
    static std::string figureText(const std::string &text)
    {
        const std::size_t interval = std::min(text.find(" ("), text.find(" ±"));
        if (interval == std::string::npos)
            return htmlText(text);
        return htmlText(text.substr(0, interval + 1)) + "<br/><span class=\"interval\">"
               + htmlText(text.substr(interval + 1)) + "</span>";
    }

    const HtmlParts &m_parts;
    std::string m_heading; ///< of the section that is being written
    std::map<std::string, int> m_files;
    std::string m_text;
};

} // namespace

std::string asHtml(const Document &document, const HtmlParts &parts)
{
    return HtmlWriter(document, parts).take();
}

} // namespace klineage::report
