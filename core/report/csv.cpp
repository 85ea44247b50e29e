// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/writers.h"

namespace klineage::report {

namespace {

std::string csvCell(const std::string &text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos)
        return text;
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"')
            quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

void addLine(std::string &csv, const std::vector<std::string> &cells)
{
    for (std::size_t i = 0; i < cells.size(); ++i)
        csv += (i > 0 ? "," : "") + csvCell(cells[i]);
    csv += "\r\n";
}

} // namespace

std::string asCsv(const Table &table)
{
    std::string csv;
    if (!table.data.columns.empty()) {
        addLine(csv, table.data.columns);
        for (const auto &row : table.data.rows)
            addLine(csv, row);
        return csv;
    }
    std::vector<std::string> headings;
    for (const Column &column : table.columns)
        headings.push_back(column.heading);
    addLine(csv, headings);
    for (const auto &row : table.rows)
        addLine(csv, row);
    return csv;
}

} // namespace klineage::report
