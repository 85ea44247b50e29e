// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/view/linelayouts.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr std::size_t mostLines = 1500;
constexpr int longLine = 4000;     // units; longer lines are shaped in windows …
constexpr int windowStep = 1000;   // … that begin at multiples of this …
constexpr int windowLength = 4000; // … and hold this much

quint64 keyOf(Side side, int line, int window)
{
    return (quint64(side) << 63) | (quint64(quint32(line)) << 24) | quint64(window & 0xffffff);
}

} // namespace

LineLayout::LineLayout(const QString &text, int firstUnit, double charWidth)
    : m_layout(text.mid(firstUnit, firstUnit > 0 || text.size() > longLine ? windowLength : -1))
    , m_firstUnit(firstUnit)
    , m_length(static_cast<int>(text.size()))
    , m_charWidth(charWidth)
{}

double LineLayout::xOf(int unit) const
{
    const int shaped = static_cast<int>(m_layout.text().size());
    const int inside = std::clamp(unit - m_firstUnit, 0, shaped);
    return m_firstUnit * m_charWidth + m_layout.lineAt(0).cursorToX(inside);
}

int LineLayout::unitAt(double x) const
{
    return m_firstUnit + m_layout.lineAt(0).xToCursor(x - m_firstUnit * m_charWidth);
}

double LineLayout::width() const
{
    return m_firstUnit * m_charWidth + m_layout.lineAt(0).naturalTextWidth();
}

void LineLayout::draw(QPainter &painter, const QPointF &origin) const
{
    m_layout.draw(&painter, origin + QPointF(m_firstUnit * m_charWidth, 0));
}

void LineLayouts::setStyle(const QFont &font, const CodePalette &palette)
{
    m_font = font;
    m_palette = palette;
    m_charWidth = QFontMetricsF(font).horizontalAdvance(QLatin1Char('0'));
    clear();
}

void LineLayouts::forget(Side side, int first, int count)
{
    std::erase_if(m_lines, [=](const auto &entry) {
        const int line = static_cast<int>((entry.first >> 24) & 0x7fffffff);
        return (entry.first >> 63) == quint64(side) && line >= first && line < first + count;
    });
}

const LineLayout &LineLayouts::line(const TextLines &text, Side side, int line, const LineRuns &runs,
                                    int scrolled)
{
    const bool isLong = text.line(line).size() > std::size_t(longLine);
    const int window = isLong ? std::max(0, static_cast<int>(scrolled / m_charWidth) / windowStep - 1) : 0;
    const quint64 key = keyOf(side, line, window);
    const auto found = m_lines.find(key);
    if (found != m_lines.end())
        return *found->second;
    if (m_lines.size() >= mostLines)
        m_lines.clear();

    auto made = std::make_unique<LineLayout>(text.text(line), window * windowStep, m_charWidth);
    QTextLayout &layout = made->m_layout;
    QTextOption option;
    option.setWrapMode(QTextOption::NoWrap);
    option.setTabStopDistance(TextLines::tabColumns * m_charWidth);
    layout.setTextOption(option);
    layout.setFont(m_font);
    layout.setCacheEnabled(true);
    QList<QTextLayout::FormatRange> formats;
    formats.reserve(static_cast<qsizetype>(runs.size()));
    for (const TokenRun &run : runs) {
        QTextLayout::FormatRange range;
        range.start = run.begin - made->m_firstUnit;
        range.length = run.length;
        if (range.start + range.length <= 0)
            continue;
        range.format.setForeground(m_palette.token(run.style));
        if (isItalic(run.style)) // a format that says anything of the font makes Qt look for the font anew
            range.format.setFontItalic(true);
        formats.append(range);
    }
    layout.setFormats(formats);
    layout.beginLayout();
    QTextLine textLine = layout.createLine();
    if (textLine.isValid())
        textLine.setLineWidth(1e7);
    layout.endLayout();
    return *m_lines.emplace(key, std::move(made)).first->second;
}

} // namespace klineage::ui
