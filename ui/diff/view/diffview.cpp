// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/view/diffview.h"

#include "ui/diff/render/anchor.h"
#include "ui/diff/render/heattext.h"
#include "ui/diff/view/overviewstrip.h"
#include "ui/diff/view/painter.h"
#include "ui/style/fonts.h"
#include "ui/style/keyedcommand.h"
#include "ui/style/theme.h"

#include <QAccessible>
#include <QEvent>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QPaintEvent>
#include <QPainter>
#include <QScrollBar>
#include <QTimer>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

// The eye rests in the upper third: that line stays in place when the document changes.
constexpr double readingHeight = 0.3;
constexpr int leastWrapColumns = 16;

} // namespace

DiffView::DiffView(QWidget *parent)
    : QAbstractScrollArea(parent)
    , m_autoScroll(new QTimer(this))
{
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAsNeeded);
    setAccessibleName(tr("Differences"));
    viewport()->setCursor(Qt::IBeamCursor);
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    m_strip = new OverviewStrip(m_state, m_geometry, verticalScrollBar(), this);
    setViewportMargins(0, 0, OverviewStrip::stripWidth, 0);
    m_autoScroll->setInterval(30);
    connect(m_autoScroll, &QTimer::timeout, this, &DiffView::autoScroll);
    for (const Side side : {Side::Left, Side::Right}) {
        connect(&m_highlighters[static_cast<int>(side)], &TextHighlighter::chunkReady, this,
                [this, side](int first, const std::vector<LineRuns> &runs) {
                    m_state.setRuns(side, first, runs);
                    m_layouts.forget(side, first, static_cast<int>(runs.size()));
                    viewport()->update();
                });
    }
    takeCommands(addKeyedCommand(this, {}, tr("Copy the selected code"), QKeySequence::Copy),
                 addKeyedCommand(this, {}, tr("Select all code of this side"), QKeySequence::SelectAll));
    applyStyle();
}

DiffView::~DiffView() = default;

void DiffView::applyStyle()
{
    m_palette = CodePalette::from(Theme::current());
    const QFont font = codeFont();
    m_layouts.setStyle(font, m_palette);
    m_strip->setPalette(m_palette);
    m_geometry.rowHeight = static_cast<int>(std::ceil(QFontMetricsF(font).height() * 1.12));
    updateGeometryOfRows();
}

void DiffView::setDocument(DocumentPtr document, bool keepPlace)
{
    for (TextHighlighter &highlighter : m_highlighters)
        highlighter.stop();
    const DocumentPtr before = m_state.document();
    Place place = readingPlace();
    std::optional<Anchor> anchor;
    if (keepPlace && before && document && place.row < m_state.rows().count())
        anchor = findAnchor(*before, m_state.rows().at(place.row).row, *document);

    m_state.setDocument(std::move(document));
    m_layouts.clear();
    updateGeometryOfRows();
    m_strip->documentChanged();
    place.y = anchor ? place.y : 0;
    place.row =
        anchor ? m_state.rows().indexOf(m_state.rows().diffRowOf(anchor->side, anchor->line), anchor->side)
               : 0;
    scrollTo(place);
    if (!keepPlace)
        horizontalScrollBar()->setValue(0);
    m_state.currentRow = anchor ? place.row : 0;
    startHighlighting();
    viewport()->update();
    emit currentRowChanged();
}

void DiffView::startHighlighting()
{
    const DocumentPtr &shown = m_state.document();
    if (!shown)
        return;
    for (const Side side : {Side::Left, Side::Right}) {
        if (!shown->has(side) || shown->side(side).text.count() == 0 || !shown->side(side).runs.empty())
            continue;
        const int top = m_state.rows().count() > 0
                            ? m_state.rows().at(std::min(rowAt(0), m_state.rows().count() - 1)).row
                            : 0;
        const int line = std::max(0, lineOf(shown->diff.rows[static_cast<std::size_t>(top)], side));
        const SideTextPtr owner = side == Side::Left ? shown->left : shown->right;
        m_highlighters[static_cast<int>(side)].start(std::shared_ptr<const TextLines>(owner, &owner->text),
                                                     owner->language, line,
                                                     viewport()->height() / m_geometry.rowHeight + 1);
    }
}

void DiffView::updateGeometryOfRows()
{
    const DocumentPtr &shown = m_state.document();
    int lines = 1;
    int columns = 0;
    for (const Side side : {Side::Left, Side::Right}) {
        if (shown && shown->has(side)) {
            lines = std::max(lines, shown->side(side).text.count());
            columns = std::max(columns, shown->side(side).text.widestColumns());
        }
    }
    m_geometry = ViewGeometry::make(
        viewport()->size(), m_state.isSplit(), m_state.isUnified(), lines, m_layouts.charWidth(),
        m_geometry.rowHeight,
        {m_state.heat && m_state.heat->has(Side::Left), m_state.heat && m_state.heat->has(Side::Right)});
    if (m_state.options().wrap && shown)
        wrapRows();
    const int content = m_geometry.topOf(m_state.rows().count());
    verticalScrollBar()->setSingleStep(m_geometry.rowHeight);
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setRange(0, std::max(0, content - viewport()->height()));
    const int visible =
        std::min(m_geometry.column(Side::Left).textWidth(), m_geometry.column(Side::Right).textWidth());
    const int width = static_cast<int>(std::ceil((columns + 2) * m_layouts.charWidth()));
    horizontalScrollBar()->setSingleStep(static_cast<int>(m_layouts.charWidth() * 4));
    horizontalScrollBar()->setPageStep(std::max(1, visible));
    horizontalScrollBar()->setRange(
        0, columns == 0 || m_geometry.wrapWidth > 0 ? 0 : std::max(0, width - visible));
}

/// A row is as high as the longer of its two lines. Columns are counted by bytes, which is never too few.
void DiffView::wrapRows()
{
    const double charWidth = m_layouts.charWidth();
    const int room =
        std::min(m_geometry.column(Side::Left).textWidth(), m_geometry.column(Side::Right).textWidth());
    const int columns = std::max(leastWrapColumns, static_cast<int>(room / charWidth) - 1);
    m_geometry.wrapWidth = static_cast<int>(std::lround(columns * charWidth));
    m_geometry.tops.reserve(static_cast<std::size_t>(m_state.rows().count()) + 1);
    int top = 0;
    for (int i = 0; i < m_state.rows().count(); ++i) {
        m_geometry.tops.push_back(top);
        const ViewRow &viewRow = m_state.rows().at(i);
        int lines = 1;
        for (const Side side : {Side::Left, Side::Right}) {
            const int line = viewRow.kind == ViewRow::Kind::Fold || !document()->has(side)
                                 ? -1
                                 : lineOf(document()->diff.rows[static_cast<std::size_t>(viewRow.row)], side);
            if (line < 0)
                continue;
            const std::string_view bytes = document()->side(side).text.line(line);
            const auto tabs = std::count(bytes.begin(), bytes.end(), '\t');
            const int length =
                static_cast<int>(bytes.size()) + static_cast<int>(tabs) * (TextLines::tabColumns - 1);
            lines = std::max(lines, (length + columns - 1) / columns);
        }
        top += lines * m_geometry.rowHeight;
    }
    m_geometry.tops.push_back(top);
}

int DiffView::rowAt(int y) const
{
    return m_geometry.rowAt(verticalScrollBar()->value() + y);
}

DiffView::Place DiffView::readingPlace() const
{
    const int row = std::min(rowAt(static_cast<int>(viewport()->height() * readingHeight)),
                             std::max(0, m_state.rows().count() - 1));
    return {row, m_geometry.topOf(row) - verticalScrollBar()->value()};
}

void DiffView::scrollTo(const Place &place)
{
    verticalScrollBar()->setValue(m_geometry.topOf(place.row) - place.y);
}

void DiffView::changeOptions(const ViewOptions &options)
{
    const DocumentPtr &shown = m_state.document();
    Place place = readingPlace();
    const bool some = shown && place.row < m_state.rows().count();
    const ViewRow before = some ? m_state.rows().at(place.row) : ViewRow{};
    const int current = some ? m_state.rows().at(m_state.currentRow).row : 0;
    m_state.setOptions(options);
    updateGeometryOfRows();
    if (some) {
        m_strip->documentChanged();
        place.row =
            m_state.rows().indexOf(before.row, before.kind == ViewRow::Kind::Left ? Side::Left : Side::Right);
        scrollTo(place);
        m_state.currentRow = m_state.rows().indexOf(current, Side::Right);
    }
    viewport()->update();
    emit currentRowChanged();
}

void DiffView::setUnified(bool unified)
{
    ViewOptions options = m_state.options();
    options.unified = unified;
    changeOptions(options);
}

void DiffView::setFolding(bool folding)
{
    ViewOptions options = m_state.options();
    options.fold = folding;
    changeOptions(options);
}

void DiffView::setWrapping(bool wrap)
{
    ViewOptions options = m_state.options();
    options.wrap = wrap;
    changeOptions(options);
}

void DiffView::setHeat(HeatPtr heat)
{
    if (heat == m_state.heat)
        return;
    const Place place = readingPlace();
    m_state.heat = std::move(heat);
    updateGeometryOfRows();
    scrollTo(place);
    viewport()->update();
}

QString DiffView::heatOfRow(int row, Side side) const
{
    if (!m_state.heat || row < 0 || row >= m_state.rows().count())
        return {};
    return heatInWords(m_state.heat->side(side),
                       linesOfViewRow(document()->diff, m_state.rows().at(row), side));
}

void DiffView::setComments(CommentsPtr comments)
{
    if (comments == m_state.comments)
        return;
    m_state.comments = std::move(comments);
    m_strip->update();
    viewport()->update();
}

QString DiffView::commentsOfRow(int row, Side side) const
{
    if (!m_state.comments || row < 0 || row >= m_state.rows().count())
        return {};
    QStringList words;
    for (const CommentMark *mark :
         m_state.comments->on(side, linesOfViewRow(document()->diff, m_state.rows().at(row), side)))
        words << mark->words;
    return words.join(QLatin1Char('\n'));
}

std::optional<DiffView::ChosenLines> DiffView::chosenLines() const
{
    if (!document() || m_state.rows().count() == 0)
        return std::nullopt;
    const std::optional<SideLine> current = m_state.currentLine();
    const TextSelection &selection = m_state.selection;
    if (!selection.isEmpty() && document()->has(selection.side)) {
        const int count = document()->side(selection.side).text.count();
        ChosenLines lines{selection.side, selection.begin().line, selection.end().line};
        if (selection.end().unit == 0) // at the beginning of the line after the last one
            lines.last = std::max(lines.first, lines.last - 1);
        lines.last = std::min(lines.last, count - 1);
        const bool isHere = current && current->side == lines.side && current->line >= lines.first
                            && current->line <= lines.last + 1;
        if (isHere && lines.first <= lines.last)
            return lines;
    }
    return current && current->line >= 0
               ? std::optional(ChosenLines{current->side, current->line, current->line})
               : std::nullopt;
}

int DiffView::hunkCount() const
{
    return document() ? static_cast<int>(document()->diff.hunks.size()) : 0;
}

int DiffView::hunkFirstRow(int hunk) const
{
    const int diffRow = document()->diff.hunks[static_cast<std::size_t>(hunk)].firstRow;
    return std::min(m_state.rows().indexOf(diffRow, Side::Left),
                    m_state.rows().indexOf(diffRow, Side::Right));
}

int DiffView::currentHunk() const
{
    int found = -1;
    for (int low = 0, high = hunkCount() - 1; low <= high;) {
        const int middle = (low + high) / 2;
        if (hunkFirstRow(middle) <= m_state.currentRow) {
            found = middle;
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return found;
}

bool DiffView::goToNextHunk()
{
    const int next = currentHunk() + 1;
    if (next >= hunkCount())
        return false;
    goToHunk(next);
    return true;
}

bool DiffView::goToPreviousHunk()
{
    int hunk = currentHunk();
    if (hunk >= 0 && hunkFirstRow(hunk) == m_state.currentRow)
        --hunk;
    if (hunk < 0)
        return false;
    goToHunk(hunk);
    return true;
}

void DiffView::goToHunk(int hunk)
{
    if (hunk < 0 || hunk >= hunkCount())
        return;
    const int row = hunkFirstRow(hunk);
    const int rows = document()->diff.hunks[static_cast<std::size_t>(hunk)].rowCount;
    const int top = m_geometry.topOf(row) - verticalScrollBar()->value();
    const int bottom = m_geometry.topOf(row + rows) - verticalScrollBar()->value();
    const bool wholeVisible = top >= m_geometry.rowHeight && bottom <= viewport()->height();
    if (!wholeVisible)
        scrollTo({row, viewport()->height() / 5});
    setCurrentRow(row);
}

void DiffView::setMatches(FindResult matches, int current)
{
    m_state.matches = std::move(matches);
    m_state.currentMatch = current;
    viewport()->update();
}

void DiffView::goToMatch(int index)
{
    if (index < 0 || index >= static_cast<int>(m_state.matches.matches.size()))
        return;
    m_state.currentMatch = index;
    const FindMatch &match = m_state.matches.matches[static_cast<std::size_t>(index)];
    reveal(match.diffRow);
    setCurrentRow(m_state.rows().indexOf(match.diffRow, match.side));
    ensureVisible(m_state.currentRow);
    if (m_geometry.wrapWidth > 0) {
        viewport()->update();
        return;
    }
    const int x = static_cast<int>(match.begin * m_layouts.charWidth());
    const int width = m_geometry.column(match.side).textWidth();
    const int scrolled = horizontalScrollBar()->value();
    if (x < scrolled || x + match.length * m_layouts.charWidth() > scrolled + width)
        horizontalScrollBar()->setValue(x - width / 3);
    viewport()->update();
}

void DiffView::reveal(int diffRow)
{
    const ViewRow row = m_state.rows().at(m_state.rows().indexOf(diffRow, Side::Right));
    if (row.kind != ViewRow::Kind::Fold)
        return;
    m_state.openFold(row.row);
    updateGeometryOfRows();
    m_strip->documentChanged();
}

void DiffView::goToLine(Side side, int line)
{
    const int diffRow = document() ? m_state.rows().diffRowOf(side, line) : -1;
    if (diffRow < 0)
        return;
    reveal(diffRow);
    const int row = m_state.rows().indexOf(diffRow, side);
    scrollTo({row, viewport()->height() / 3});
    setCurrentRow(row);
}

bool DiffView::showLine(Side side, int line)
{
    const int diffRow = document() && document()->has(side) ? m_state.rows().diffRowOf(side, line) : -1;
    if (diffRow < 0)
        return false;
    reveal(diffRow);
    const int row = m_state.rows().indexOf(diffRow, side);
    const int top = m_geometry.topOf(row) - verticalScrollBar()->value();
    if (top < m_geometry.rowHeight || top + 2 * m_geometry.rowHeight > viewport()->height())
        scrollTo({row, viewport()->height() / 3});
    m_state.selection = {side, {line, 0}, {line, 0}};
    moveToRow(row);
    m_state.marked = SideLine{side, line};
    return true;
}

void DiffView::setCurrentRow(int row, bool extend)
{
    moveToRow(row, extend);
    m_state.marked.reset();
    if (const std::optional<SideLine> line = m_state.currentLine())
        emit lineChosen(line->side, line->line);
}

void DiffView::moveToRow(int row, bool extend)
{
    const int last = std::max(0, m_state.rows().count() - 1);
    m_state.currentRow = std::clamp(row, 0, last);
    if (extend)
        m_state.selection.cursor = positionOfRow(m_state.currentRow, m_state.selection.side);
    viewport()->update();
    QStringList words{currentRowInWords()};
    for (const Side side : {Side::Left, Side::Right})
        words << heatOfRow(m_state.currentRow, side) << commentsOfRow(m_state.currentRow, side);
    words.removeAll(QString());
    setAccessibleDescription(words.join(QStringLiteral(". ")));
    QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
    QAccessible::updateAccessibility(&changed);
    emit currentRowChanged();
}

void DiffView::ensureVisible(int row)
{
    const int top = m_geometry.topOf(row);
    const int margin = std::min(3 * m_geometry.rowHeight, viewport()->height() / 4);
    QScrollBar *bar = verticalScrollBar();
    if (top - margin < bar->value())
        bar->setValue(top - margin);
    else if (const int bottom = top + m_geometry.heightOf(row);
             bottom + margin > bar->value() + viewport()->height())
        bar->setValue(bottom + margin - viewport()->height());
}

QString DiffView::currentRowInWords() const
{
    if (!document() || m_state.rows().count() == 0)
        return {};
    const ViewRow &viewRow = m_state.rows().at(m_state.currentRow);
    if (viewRow.kind == ViewRow::Kind::Fold)
        return tr("%1 unchanged lines, folded").arg(viewRow.rowCount);
    const diff::Row &row = document()->diff.rows[static_cast<std::size_t>(viewRow.row)];
    const auto text = [&](Side side) {
        return document()->side(side).text.text(lineOf(row, side)).trimmed();
    };
    switch (row.kind) {
    case diff::Row::Kind::Changed:
        return tr("Line %1 changed: %2. Was: %3")
            .arg(QString::number(row.rightLine + 1), text(Side::Right), text(Side::Left));
    case diff::Row::Kind::Added:
        return row.moved >= 0
                   ? tr("Line %1 moved here: %2").arg(QString::number(row.rightLine + 1), text(Side::Right))
                   : tr("Line %1 added: %2").arg(QString::number(row.rightLine + 1), text(Side::Right));
    case diff::Row::Kind::Removed:
        return row.moved >= 0
                   ? tr("Line %1 moved away: %2").arg(QString::number(row.leftLine + 1), text(Side::Left))
                   : tr("Line %1 removed: %2").arg(QString::number(row.leftLine + 1), text(Side::Left));
    case diff::Row::Kind::Equal:
        break;
    }
    const Side side = row.rightLine >= 0 ? Side::Right : Side::Left;
    return tr("Line %1: %2").arg(QString::number(lineOf(row, side) + 1), text(side));
}

bool DiffView::event(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::ApplicationFontChange)
        applyStyle();
    return QAbstractScrollArea::event(event);
}

void DiffView::paintEvent(QPaintEvent *event)
{
    QPainter painter(viewport());
    DiffPainter(painter, m_state, m_layouts, m_geometry, m_palette)
        .paint(verticalScrollBar()->value(), horizontalScrollBar()->value(), event->rect(), hasFocus());
}

void DiffView::resizeEvent(QResizeEvent *event)
{
    QAbstractScrollArea::resizeEvent(event);
    const QRect area = viewport()->geometry();
    m_strip->setGeometry(area.right() + 1, area.top(), OverviewStrip::stripWidth, area.height());
    const Place place{rowAt(0), m_geometry.topOf(rowAt(0)) - verticalScrollBar()->value()};
    updateGeometryOfRows();
    scrollTo(place);
}

void DiffView::scrollContentsBy(int, int)
{
    viewport()->update();
}

void DiffView::focusInEvent(QFocusEvent *event)
{
    QAbstractScrollArea::focusInEvent(event);
    viewport()->update();
}

void DiffView::focusOutEvent(QFocusEvent *event)
{
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

} // namespace klineage::ui
