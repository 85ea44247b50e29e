// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/textlines.h"

#include <algorithm>

namespace klineage::ui {

TextLines::TextLines(std::string bytes)
    : m_bytes(std::move(bytes))
{
    const std::string_view text = m_bytes;
    std::size_t begin = 0;
    while (begin < text.size()) {
        m_begins.push_back(static_cast<std::uint32_t>(begin));
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        const auto tabs = std::count(line.begin(), line.end(), '\t');
        m_widestColumns = std::max(m_widestColumns,
                                   static_cast<int>(line.size()) + static_cast<int>(tabs) * (tabColumns - 1));
        begin = end + 1;
    }
}

std::string_view TextLines::line(int index) const
{
    const auto at = static_cast<std::size_t>(index);
    const std::size_t begin = m_begins[at];
    std::size_t end = at + 1 < m_begins.size() ? m_begins[at + 1] - 1 : m_bytes.size();
    if (at + 1 == m_begins.size() && end > begin && m_bytes[end - 1] == '\n')
        --end;
    return std::string_view(m_bytes).substr(begin, end - begin);
}

QString TextLines::text(int index) const
{
    const std::string_view bytes = line(index);
    QString text = QString::fromUtf8(bytes.data(), static_cast<qsizetype>(bytes.size()));
    const auto control = [](QChar c) { return c.unicode() < 0x20 && c != u'\t'; };
    if (std::any_of(text.cbegin(), text.cend(), control)) {
        for (QChar &c : text) {
            if (control(c))
                c = QChar(static_cast<char16_t>(0x2400 + c.unicode()));
        }
    }
    return text;
}

int unitOfByte(std::string_view line, int byte)
{
    const std::string_view prefix = line.substr(0, static_cast<std::size_t>(byte));
    if (std::all_of(prefix.begin(), prefix.end(), [](char c) { return c >= 0; }))
        return byte;
    return static_cast<int>(QString::fromUtf8(prefix.data(), static_cast<qsizetype>(prefix.size())).size());
}

} // namespace klineage::ui
