// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/texttable.h"

#include <algorithm>

namespace klineage::cli {

namespace {

std::size_t widthOf(const std::string &text)
{
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

} // namespace

TextTable::TextTable(std::vector<Column> columns)
    : m_columns(std::move(columns))
{}

void TextTable::addRow(std::vector<std::string> cells)
{
    cells.resize(m_columns.size());
    m_rows.push_back(std::move(cells));
}

std::string TextTable::text(int indent) const
{
    std::vector<std::string> headings;
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < m_columns.size(); ++i) {
        headings.push_back(m_columns[i].heading);
        widths.push_back(widthOf(m_columns[i].heading));
        for (const auto &row : m_rows)
            widths[i] = std::max(widths[i], widthOf(row[i]));
    }
    std::string out;
    const auto addLine = [&](const std::vector<std::string> &cells) {
        std::string line(static_cast<std::size_t>(indent), ' ');
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::string padding(widths[i] - widthOf(cells[i]), ' ');
            line += (i > 0 ? "  " : "");
            line += m_columns[i].align == Align::Right ? padding + cells[i] : cells[i] + padding;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    };
    addLine(headings);
    for (const auto &row : m_rows)
        addLine(row);
    return out;
}

} // namespace klineage::cli
