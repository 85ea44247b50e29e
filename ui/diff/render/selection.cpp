// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/render/selection.h"

#include <algorithm>

namespace klineage::ui {

SelectedUnits selectedUnits(const TextSelection &selection, int line, int lineLength)
{
    const TextPosition begin = selection.begin();
    const TextPosition end = selection.end();
    if (selection.isEmpty() || line < begin.line || line > end.line)
        return {};
    SelectedUnits units;
    units.begin = line == begin.line ? std::min(begin.unit, lineLength) : 0;
    units.end = line == end.line ? std::min(end.unit, lineLength) : lineLength;
    units.newline = line < end.line;
    return units;
}

QString selectedText(const Document &document, const TextSelection &selection)
{
    QString text;
    if (selection.isEmpty() || !document.has(selection.side))
        return text;
    const TextLines &lines = document.side(selection.side).text;
    const int last = std::min(selection.end().line, lines.count() - 1);
    for (int line = selection.begin().line; line <= last; ++line) {
        const std::string_view bytes = lines.line(line);
        const QString content = QString::fromUtf8(bytes.data(), static_cast<qsizetype>(bytes.size()));
        const SelectedUnits units = selectedUnits(selection, line, static_cast<int>(content.size()));
        text += QStringView(content).mid(units.begin, units.end - units.begin);
        if (units.newline)
            text += u'\n';
    }
    return text;
}

TextSelection wordAt(const Document &document, Side side, TextPosition position)
{
    TextSelection selection{side, position, position};
    const TextLines &lines = document.side(side).text;
    if (position.line < 0 || position.line >= lines.count())
        return selection;
    const QString text = lines.text(position.line);
    const auto isWord = [&](int unit) { return text.at(unit).isLetterOrNumber() || text.at(unit) == u'_'; };
    int begin = std::clamp(position.unit, 0, std::max(0, static_cast<int>(text.size()) - 1));
    int end = begin;
    if (text.isEmpty())
        return selection;
    if (!isWord(begin)) {
        ++end;
    } else {
        while (begin > 0 && isWord(begin - 1))
            --begin;
        while (end < text.size() && isWord(end))
            ++end;
    }
    selection.anchor.unit = begin;
    selection.cursor.unit = end;
    return selection;
}

} // namespace klineage::ui
