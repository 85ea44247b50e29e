// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::ui {

/// A text and where its lines begin. Lines are those of klineage::diff: a final newline starts no other line. Immutable, so it may be
/// read from any thread.
class TextLines
{
public:
    TextLines() = default;
    explicit TextLines(std::string bytes);

    [[nodiscard]] std::string_view bytes() const { return m_bytes; }
    [[nodiscard]] int count() const { return static_cast<int>(m_begins.size()); }
    /// UTF-8, without the newline.
    [[nodiscard]] std::string_view line(int index) const;
    /// As line(), decoded; control characters other than tab become their visible symbols, one for one.
    [[nodiscard]] QString text(int index) const;
    /// Upper bound of the columns of any line, tabs counted as tabColumns.
    [[nodiscard]] int widestColumns() const { return m_widestColumns; }
    [[nodiscard]] bool endsWithNewline() const { return m_bytes.empty() || m_bytes.back() == '\n'; }

    static constexpr int tabColumns = 4;

private:
    std::string m_bytes;
    std::vector<std::uint32_t> m_begins;
    int m_widestColumns = 0;
};

/// UTF-16 units of the first `byte` bytes of a UTF-8 line.
[[nodiscard]] int unitOfByte(std::string_view line, int byte);

} // namespace klineage::ui
