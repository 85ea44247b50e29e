// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace klineage::cli {

/// Rows of text under headings, columns as wide as their longest cell (counted in characters of UTF-8).
class TextTable
{
public:
    enum class Align { Left, Right };
    struct Column {
        std::string heading;
        Align align = Align::Left;
    };

    explicit TextTable(std::vector<Column> columns);

    /// Missing cells are blank.
    void addRow(std::vector<std::string> cells);
    [[nodiscard]] bool isEmpty() const { return m_rows.empty(); }
    [[nodiscard]] std::string text(
        int indent = 0) const; ///< every line ends with a newline and without trailing blanks

private:
    std::vector<Column> m_columns;
    std::vector<std::vector<std::string>> m_rows;
};

} // namespace klineage::cli
