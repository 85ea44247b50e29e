// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/view/painter.h"

#include "ui/diff/render/heattext.h"

#include <QPaintEngine>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

using Kind = diff::Row::Kind;

constexpr int arrowWidth = 8; // left of the line numbers
constexpr int commentBarWidth = 2;

bool touches(const diff::Row &row, Side side)
{
    return lineOf(row, side) >= 0;
}

} // namespace

int movedCounterpart(const Document &document, int diffRow)
{
    const auto &rows = document.diff.rows;
    const diff::Row &row = rows[static_cast<std::size_t>(diffRow)];
    if (row.moved < 0)
        return -1;
    const Side from = row.leftLine >= 0 ? Side::Left : Side::Right;
    int before = 0; // rows of the block above this one
    int firstThere = -1;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].moved != row.moved)
            continue;
        if (!touches(rows[i], from) && firstThere < 0)
            firstThere = lineOf(rows[i], other(from));
        if (touches(rows[i], from) && static_cast<int>(i) < diffRow)
            ++before;
    }
    return firstThere < 0 ? -1 : firstThere + before;
}

DiffPainter::DiffPainter(QPainter &painter, ViewState &state, LineLayouts &layouts,
                         const ViewGeometry &geometry, const CodePalette &palette)
    : m_painter(painter)
    , m_state(state)
    , m_layouts(layouts)
    , m_geometry(geometry)
    , m_palette(palette)
{}

void DiffPainter::paint(int top, int scrolled, const QRect &area, bool hasFocus)
{
    m_top = top;
    m_scrolled = scrolled;
    m_hasFocus = hasFocus;
    m_painter.fillRect(area, m_palette.background);
    if (!m_state.document())
        return;
    m_painter.setFont(m_layouts.font());
    const int rows = m_state.rows().count();
    const int first = std::clamp(m_geometry.rowAt(top + area.top()), 0, rows);
    const int last = std::clamp(m_geometry.rowAt(top + area.bottom()) + 1, first, rows);
    paintColumn(Side::Left, first, last);
    if (m_geometry.isSplit) {
        paintColumn(Side::Right, first, last);
        const int x = m_geometry.column(Side::Left).rect.right() + 1;
        m_painter.fillRect(QRect(x, area.top(), 1, area.height()), m_palette.separator);
    }
}

void DiffPainter::paintColumn(Side side, int firstRow, int lastRow)
{
    const ColumnGeometry &column = m_geometry.column(side);
    m_painter.save();
    m_painter.setClipRect(column.rect, Qt::IntersectClip);
    for (int i = firstRow; i < lastRow; ++i) {
        const ViewRow &row = m_state.rows().at(i);
        const QRect rect(column.rect.left(), m_geometry.topOf(i) - m_top, column.rect.width(),
                         m_geometry.heightOf(i));
        m_isCurrent = i == m_state.currentRow && m_hasFocus;
        Side shown = side;
        if (m_state.document()->isSingle() || row.kind == ViewRow::Kind::Right)
            shown = Side::Right;
        if (row.kind == ViewRow::Kind::Fold)
            paintFold(row, column, rect, shown);
        else
            paintCell({shown, row.row, rect}, column);
        if (m_state.heat)
            paintHeat(row, column, rect);
        if (m_state.comments) {
            for (const Side which : {Side::Left, Side::Right}) {
                if (which == side || !m_geometry.isSplit)
                    paintComments(row, column, rect, which);
            }
        }
    }
    const Side told = m_state.document()->isSingle() ? Side::Right : side;
    if (m_state.document()->has(told) && !m_state.isUnified()) {
        const QString &message = m_state.document()->side(told).message;
        if (!message.isEmpty())
            paintMessage(column, message);
    }
    m_painter.restore();
}

void DiffPainter::paintMessage(const ColumnGeometry &column, const QString &message)
{
    m_painter.save();
    m_painter.fillRect(column.rect, m_palette.background);
    m_painter.setPen(m_palette.muted);
    m_painter.setFont(QFont());
    const int margin = std::min(40, column.rect.width() / 8);
    m_painter.drawText(column.rect.adjusted(margin, 48, -margin, 0),
                       Qt::AlignHCenter | Qt::AlignTop | Qt::TextWordWrap, message);
    m_painter.restore();
}

void DiffPainter::paintFold(const ViewRow &row, const ColumnGeometry &column, const QRect &rect, Side side)
{
    m_painter.fillRect(rect, m_palette.fold);
    markCurrent(rect);
    if (rect.top() > 0)
        m_painter.fillRect(QRect(rect.left(), rect.top(), rect.width(), 1), m_palette.separator);
    m_painter.fillRect(QRect(rect.left(), rect.bottom(), rect.width(), 1), m_palette.separator);
    const int baseline = rect.top() + (rect.height() + QFontMetrics(m_layouts.font()).ascent()) / 2 - 1;
    m_painter.setPen(m_palette.muted);
    const double charWidth = m_layouts.charWidth();
    m_painter.drawText(QPointF(column.signLeft - charWidth * 0.5, baseline), QStringLiteral("⋯"));
    const QString label =
        row.rowCount == 1 ? tr("1 unchanged line") : tr("%1 unchanged lines").arg(row.rowCount);
    m_painter.drawText(QPointF(column.textLeft, baseline), label);

    // The function that the code below the fold belongs to.
    const diff::Row &lastHidden =
        m_state.document()->diff.rows[static_cast<std::size_t>(row.row + row.rowCount - 1)];
    const int line = lineOf(lastHidden, side);
    const TextLines &text = m_state.document()->side(side).text;
    const int heading = line < 0 ? -1 : headingLine(text, line);
    if (heading < 0)
        return;
    const double left = column.textLeft + (label.size() + 2) * charWidth;
    const double width = rect.right() - left - charWidth;
    if (width < 12 * charWidth)
        return;
    QColor faded = m_palette.muted;
    faded.setAlphaF(0.75f);
    m_painter.setPen(faded);
    const QString shown = QFontMetrics(m_layouts.font())
                              .elidedText(text.text(heading), Qt::ElideRight, static_cast<int>(width));
    m_painter.drawText(QPointF(left, baseline), shown);
}

QColor DiffPainter::background(const diff::Row &row, Side side) const
{
    if (row.kind == Kind::Equal)
        return m_palette.background;
    if (row.moved >= 0)
        return m_palette.moved;
    return side == Side::Left ? m_palette.removed : m_palette.added;
}

QColor DiffPainter::barColor(const diff::Row &row) const
{
    if (row.moved >= 0)
        return m_palette.movedBar;
    switch (row.kind) {
    case Kind::Changed:
        return m_palette.changedBar;
    case Kind::Added:
        return m_palette.addedBar;
    case Kind::Removed:
        return m_palette.removedBar;
    case Kind::Equal:
        break;
    }
    return {};
}

void DiffPainter::paintCell(const Cell &cell, const ColumnGeometry &column)
{
    const diff::Row &row = m_state.document()->diff.rows[static_cast<std::size_t>(cell.diffRow)];
    const bool there = touches(row, cell.side);
    if (!there && m_state.isUnified()) {
        paintCell({other(cell.side), cell.diffRow, cell.rect}, column);
        return;
    }
    if (!there) {
        if (row.kind == Kind::Equal)
            return; // beyond the end of a text that is not compared
        m_painter.fillRect(cell.rect, m_palette.filler);
        if (m_painter.paintEngine()->type() != QPaintEngine::SVG) { // whose readers know no patterns
            m_painter.save();
            m_painter.setBrushOrigin(0, -m_top);
            m_painter.fillRect(cell.rect, QBrush(m_palette.fillerLine, Qt::BDiagPattern));
            m_painter.restore();
        }
        markCurrent(cell.rect);
        return;
    }
    if (row.kind != Kind::Equal)
        m_painter.fillRect(cell.rect, background(row, cell.side));
    markCurrent(cell.rect);
    paintGutter(cell, column, row);
    // A line that is wrapped is drawn once for each part, the parts before it scrolled out.
    const int scrolled = m_scrolled;
    for (int top = cell.rect.top(); top <= cell.rect.bottom(); top += m_geometry.rowHeight) {
        paintText(
            {cell.side, cell.diffRow, QRect(cell.rect.left(), top, cell.rect.width(), m_geometry.rowHeight)},
            column, row);
        m_scrolled += m_geometry.wrapWidth;
    }
    m_scrolled = scrolled;
    markShown(cell, column, row);
}

/// The line that another panel points at: seen without the focus, on any of the lines' colours.
void DiffPainter::markShown(const Cell &cell, const ColumnGeometry &column, const diff::Row &row)
{
    if (!m_state.marked || lineOf(row, m_state.marked->side) != m_state.marked->line)
        return;
    const bool holdsBoth = m_state.isUnified() && row.kind == Kind::Equal;
    if (cell.side != m_state.marked->side && !holdsBoth)
        return;
    const QRect &rect = cell.rect;
    m_painter.fillRect(QRect(rect.left(), rect.top(), rect.width(), 1), m_palette.accent);
    m_painter.fillRect(QRect(rect.left(), rect.bottom(), rect.width(), 1), m_palette.accent);
    m_painter.setPen(m_palette.accent);
    m_painter.drawText(QRect(column.rect.left(), rect.top(), arrowWidth, m_geometry.rowHeight),
                       Qt::AlignHCenter | Qt::AlignVCenter, QStringLiteral("▸"));
}

/// Below the text: some printers know nothing that shines through.
void DiffPainter::markCurrent(const QRect &rect)
{
    if (m_isCurrent)
        m_painter.fillRect(rect, m_palette.currentLine);
}

void DiffPainter::paintHeat(const ViewRow &row, const ColumnGeometry &column, const QRect &rect)
{
    for (const Side side : {Side::Left, Side::Right}) {
        const int left = column.heatLeft[static_cast<std::size_t>(side)];
        if (left < 0)
            continue;
        const gate::LineSpan lines = linesOfViewRow(m_state.document()->diff, row, side);
        const double share = m_state.heat->side(side).samples.share(lines);
        if (share < heatFloor)
            continue;
        // A fold may hide more than the hottest line has.
        const double part = std::min(1.0, share / m_state.heat->full);
        const int length = static_cast<int>(std::lround((column.heatWidth - heatEdge) * part));
        const QRect edge(left, rect.top() + 1, heatEdge, m_geometry.rowHeight - 2);
        m_painter.fillRect(edge, m_palette.heatEdge);
        m_painter.fillRect(QRect(edge.right() + 1, edge.top(), length, edge.height()), m_palette.heat);
        m_painter.setPen(m_palette.text);
        m_painter.drawText(QRect(left, rect.top(), column.heatWidth - 3, m_geometry.rowHeight),
                           Qt::AlignRight | Qt::AlignVCenter, formatHeat(share));
    }
}

void DiffPainter::paintComments(const ViewRow &row, const ColumnGeometry &column, const QRect &rect,
                                Side side)
{
    const gate::LineSpan lines = linesOfViewRow(m_state.document()->diff, row, side);
    for (const CommentMark *mark : m_state.comments->on(side, lines)) {
        const QColor color = mark->isResolved ? m_palette.muted : m_palette.accent;
        m_painter.fillRect(QRect(column.rect.left() + 1, rect.top(), commentBarWidth, rect.height()), color);
        if (mark->lines.first < lines.first)
            continue; // it began above
        QPainterPath bubble;
        const QRectF body(column.rect.left() + 2.5, rect.top() + (m_geometry.rowHeight - 9) / 2.0, 10, 7);
        bubble.addRoundedRect(body, 2, 2);
        bubble.addPolygon(QPolygonF{{body.left() + 2, body.bottom() - 0.5},
                                    {body.left() + 2, body.bottom() + 3},
                                    {body.left() + 5.5, body.bottom() - 0.5}});
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        m_painter.setPen(QPen(color, 1));
        m_painter.setBrush(mark->isResolved ? m_palette.background : color);
        m_painter.drawPath(bubble.simplified());
        if (mark->isChanged) { // what it was on is no more
            m_painter.setPen(QPen(mark->isResolved ? color : m_palette.background, 1.4));
            m_painter.drawLine(body.topLeft() + QPointF(2, 5.5), body.topRight() + QPointF(-2, 1.5));
        }
        m_painter.setRenderHint(QPainter::Antialiasing, false);
    }
}

void DiffPainter::paintGutter(const Cell &cell, const ColumnGeometry &column, const diff::Row &row)
{
    const auto number = [&](int right, int line) {
        m_painter.drawText(QRect(right - 80, cell.rect.top(), 80, m_geometry.rowHeight),
                           Qt::AlignRight | Qt::AlignVCenter, QString::number(line + 1));
    };
    m_painter.setPen(m_palette.muted);
    if (column.otherNumberRight == 0) {
        number(column.numberRight, lineOf(row, cell.side));
    } else {
        if (cell.side == Side::Left || row.kind == Kind::Equal)
            number(column.numberRight, row.leftLine);
        if (cell.side == Side::Right || row.kind == Kind::Equal)
            number(column.otherNumberRight, row.rightLine);
    }
    if (row.kind == Kind::Equal)
        return;
    const QColor color = barColor(row);
    const QChar sign = row.moved >= 0 ? QChar(0x2195) : cell.side == Side::Left ? QChar(0x2212) : QChar(u'+');
    m_painter.setPen(color);
    m_painter.drawText(
        QRect(column.signLeft, cell.rect.top(), column.barLeft - column.signLeft - 2, m_geometry.rowHeight),
        Qt::AlignHCenter | Qt::AlignVCenter, sign);
    m_painter.fillRect(QRect(column.barLeft, cell.rect.top(), changeBarWidth, cell.rect.height()), color);
}

void DiffPainter::paintText(const Cell &cell, const ColumnGeometry &column, const diff::Row &row)
{
    const int lineNumber = lineOf(row, cell.side);
    const SideText &side = m_state.document()->side(cell.side);
    const LineLayout &line =
        m_layouts.line(side.text, cell.side, lineNumber, m_state.runs(cell.side, lineNumber), m_scrolled);
    m_painter.save();
    const bool isWrapped = m_geometry.wrapWidth > 0;
    m_painter.setClipRect(
        isWrapped ? QRect(column.textLeft, cell.rect.top(), m_geometry.wrapWidth, cell.rect.height())
                  : QRect(column.textLeft - 2, cell.rect.top(), column.textWidth() + 2, cell.rect.height()),
        Qt::IntersectClip);

    if (row.kind == Kind::Changed) {
        const bool isLeft = cell.side == Side::Left;
        const RangeStyle style = isLeft ? RangeStyle{m_palette.removedWord, m_palette.removedWordFrame}
                                        : RangeStyle{m_palette.addedWord, m_palette.addedWordFrame};
        for (const WordChanges::Range &range :
             m_state.words(cell.diffRow).ranges[static_cast<std::size_t>(cell.side)])
            paintRange(cell, column, line, range.begin, range.end, style);
    }
    const auto &matches = m_state.matches.matches;
    const auto first =
        std::lower_bound(matches.begin(), matches.end(), cell.diffRow,
                         [](const FindMatch &match, int diffRow) { return match.diffRow < diffRow; });
    for (auto match = first; match != matches.end() && match->diffRow == cell.diffRow; ++match) {
        // In an equal row the match is listed once and holds for both sides.
        if (match->side != cell.side && row.kind != Kind::Equal)
            continue;
        const std::string_view bytes = side.text.line(lineNumber);
        const bool current = match - matches.begin() == m_state.currentMatch;
        paintRange(cell, column, line, unitOfByte(bytes, match->begin),
                   unitOfByte(bytes, match->begin + match->length),
                   {m_palette.match, current ? m_palette.matchFrame : QColor()});
    }
    if (m_state.selection.side == cell.side && !m_state.selection.isEmpty()) {
        const SelectedUnits units = selectedUnits(m_state.selection, lineNumber, line.length());
        paintRange(cell, column, line, units.begin, units.end, {m_palette.selection, {}, false});
        if (units.newline) {
            const double x = column.textLeft - m_scrolled + line.xOf(line.length());
            m_painter.fillRect(QRectF(x, cell.rect.top(), m_layouts.charWidth() / 2, cell.rect.height()),
                               m_palette.selection);
        }
    }
    m_painter.setPen(m_palette.text);
    const double ascent = (cell.rect.height() - QFontMetricsF(m_layouts.font()).height()) / 2;
    line.draw(m_painter, QPointF(column.textLeft - m_scrolled, cell.rect.top() + ascent));
    if (row.moved >= 0)
        paintMoveHint(cell, column, row, line);
    m_painter.restore();
}

void DiffPainter::paintRange(const Cell &cell, const ColumnGeometry &column, const LineLayout &line,
                             int begin, int end, const RangeStyle &style)
{
    if (end <= begin)
        return;
    const double left = column.textLeft - m_scrolled + line.xOf(begin);
    const double right = column.textLeft - m_scrolled + line.xOf(end);
    const QRectF rect(left, cell.rect.top(), right - left, cell.rect.height());
    if (!style.isRounded) {
        m_painter.fillRect(rect, style.fill);
        return;
    }
    m_painter.setRenderHint(QPainter::Antialiasing, true);
    m_painter.setPen(style.frame.isValid() ? QPen(style.frame, 1) : QPen(Qt::NoPen));
    m_painter.setBrush(style.fill);
    m_painter.drawRoundedRect(rect.adjusted(-1, 1.5, 1, -1.5), 2.5, 2.5);
    m_painter.setRenderHint(QPainter::Antialiasing, false);
}

void DiffPainter::paintMoveHint(const Cell &cell, const ColumnGeometry &column, const diff::Row &row,
                                const LineLayout &line)
{
    const auto &rows = m_state.document()->diff.rows;
    const bool firstOfBlock =
        cell.diffRow == 0 || rows[static_cast<std::size_t>(cell.diffRow) - 1].moved != row.moved;
    const int there = firstOfBlock ? movedCounterpart(*m_state.document(), cell.diffRow) : -1;
    if (there < 0)
        return;
    const QString hint = cell.side == Side::Left ? tr("moved to line %1").arg(there + 1)
                                                 : tr("moved from line %1").arg(there + 1);
    const double x = column.textLeft - m_scrolled + line.width() + 3 * m_layouts.charWidth();
    m_painter.setPen(m_palette.movedBar);
    m_painter.drawText(QRectF(x, cell.rect.top(), 4000, cell.rect.height()), Qt::AlignLeft | Qt::AlignVCenter,
                       hint);
}

} // namespace klineage::ui
