// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph/lineageview.h"

#include "ui/graph/lineagedelegate.h"
#include "ui/models/lineagemodel.h"
#include "ui/models/viewed.h"
#include "ui/style/currentrowkeeper.h"
#include "ui/style/plainwidgets.h"

#include <QHeaderView>
#include <QMouseEvent>
#include <QPainter>

namespace klineage::ui {

namespace {

constexpr int cellPadding = 14;
constexpr int leastGate = 44;
constexpr int comfortableTitle = 180;
constexpr int smallestTitle = 150;
constexpr int shortTitle = 48; // a word; what the reference column has to leave
constexpr int leastTitle = 30;
constexpr int mostReferenceChars =
    13; ///< "vs cublaslt", "0.0006× torch"; of longer names the end is left out

/// "step" stands above the titles, not above the graph.
class LineageHeader : public QHeaderView
{
public:
    LineageHeader(const LineageDelegate *delegate, QWidget *parent)
        : QHeaderView(Qt::Horizontal, parent)
        , m_delegate(delegate)
    {
        setSectionsClickable(false);
        makePlainHeader(this);
        setSectionResizeMode(QHeaderView::Fixed);
        setMinimumSectionSize(10);
    }

    /// Also of a section that is hidden: sectionSizeHint() calls that one 0 wide.
    [[nodiscard]] int wantedWidth(int section) const { return sectionSizeFromContents(section).width(); }

protected:
    /// A style sheet would cut the beginning of what is too long.
    void initStyleOptionForIndex(QStyleOptionHeader *option, int section) const override
    {
        QHeaderView::initStyleOptionForIndex(option, section);
        const int margin = QHeaderView::sectionSizeFromContents(section).width()
                           - fontMetrics().horizontalAdvance(option->text);
        option->text = fontMetrics().elidedText(option->text, Qt::ElideRight,
                                                sectionSize(section) - std::min(margin, cellPadding + 6));
    }

    void paintSection(QPainter *painter, const QRect &rect, int section) const override
    {
        if (section != LineageModel::StepColumn) {
            QHeaderView::paintSection(painter, rect, section);
            return;
        }
        const QRect title = rect.adjusted(m_delegate->titleLeft() - 8, 0, 0, 0);
        painter->save();
        QStyleOptionHeader empty;
        initStyleOption(&empty);
        empty.rect = rect;
        style()->drawControl(QStyle::CE_HeaderSection, &empty, painter, this);
        painter->restore();
        QHeaderView::paintSection(painter, title, section);
    }

private:
    const LineageDelegate *m_delegate;
};

} // namespace

LineageView::LineageView(LineageModel *model, QWidget *parent)
    : QTableView(parent)
    , m_model(model)
    , m_delegate(new LineageDelegate(model, this))
    , m_keeper(new CurrentRowKeeper(this))
{
    setHorizontalHeader(new LineageHeader(m_delegate, this));
    setModel(model);
    setItemDelegate(m_delegate);
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::SingleSelection);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setShowGrid(false);
    setWordWrap(false);
    setMouseTracking(true);
    setTabKeyNavigation(false);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    verticalHeader()->hide();
    verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    verticalHeader()->setMinimumSectionSize(10);

    for (const auto signal : {&QAbstractItemModel::modelReset})
        connect(model, signal, this, &LineageView::arrange);
    connect(model, &QAbstractItemModel::rowsInserted, this, &LineageView::arrange);
    connect(model, &QAbstractItemModel::rowsRemoved, this, &LineageView::arrange);
    connect(model, &QAbstractItemModel::dataChanged, this, &LineageView::arrange);
    connect(model, &QAbstractItemModel::headerDataChanged, this, &LineageView::arrange);
    arrange();
}

int LineageView::contentWidth(int column) const
{
    // The header's margins come from the style sheet.
    int width = static_cast<LineageHeader *>(horizontalHeader())->wantedWidth(column) - cellPadding;
    for (int row = 0; row < m_model->rowCount(); ++row) {
        if (m_model->row(row).instead.isEmpty())
            width = std::max(width,
                             fontMetrics().horizontalAdvance(m_model->index(row, column).data().toString()));
    }
    return width + cellPadding + (column == LineageModel::LatencyColumn ? m_delegate->markWidth() : 0);
}

/// Names of references may be as long as a title, which needs the place more: tooltips have them whole. Figures are never cut.
int LineageView::referenceWidth() const
{
    int figures = fontMetrics().averageCharWidth() * mostReferenceChars;
    for (const LineageRow &row : m_model->rows()) {
        if (row.instead.isEmpty())
            figures = std::max(figures, fontMetrics().horizontalAdvance(row.toReference.section(u' ', 0, 0)));
    }
    return std::min(contentWidth(LineageModel::ReferenceColumn), figures + cellPadding);
}

/// Widths come from the texts; the title takes the rest, and columns are left out until it can be read.
void LineageView::arrange()
{
    if (const int height = fontMetrics().height() + 7; verticalHeader()->defaultSectionSize() != height) {
        verticalHeader()->setDefaultSectionSize(height);
        m_keeper->keepSoon();
    }
    m_delegate->measure();
    spanFailures();
    const int available = viewport()->width() - m_delegate->titleLeft();
    int numbers = 0;
    for (int column = LineageModel::LatencyColumn; column < LineageModel::ColumnCount; ++column) {
        const int width = column == LineageModel::ReferenceColumn ? referenceWidth() : contentWidth(column);
        setColumnWidth(column, width);
        numbers += width;
    }
    // Its word in the header, and three glyphs.
    const int gateWidth = std::max(
        leastGate, static_cast<LineageHeader *>(horizontalHeader())->wantedWidth(LineageModel::GateColumn));
    const bool showGate = available - numbers - gateWidth >= comfortableTitle;
    setColumnHidden(LineageModel::GateColumn, !showGate);
    if (showGate) {
        setColumnWidth(LineageModel::GateColumn, gateWidth);
        numbers += gateWidth;
    }
    // A column that is empty in every row says nothing.
    const int noReference = m_model->reference().isEmpty() ? referenceWidth() : 0;
    numbers -= noReference;
    const bool showBaseline = m_baselineIsPinned || available - numbers >= smallestTitle;
    setColumnHidden(LineageModel::BaselineColumn, !showBaseline);
    if (!showBaseline)
        numbers -= columnWidth(LineageModel::BaselineColumn) > 0 ? columnWidth(LineageModel::BaselineColumn)
                                                                 : contentWidth(LineageModel::BaselineColumn);
    // A number that is cut off says something wrong; one that is left out says nothing.
    const int reference = referenceWidth();
    const bool showReference = noReference == 0 && available - numbers >= shortTitle;
    setColumnHidden(LineageModel::ReferenceColumn, !showReference);
    if (!showReference && noReference == 0)
        numbers -= reference;
    // The time of a branch is the least that a title says.
    const int time = fontMetrics().horizontalAdvance(QStringLiteral("00:00")) + cellPadding;
    const bool showChange = available - numbers >= std::max(leastTitle, time);
    setColumnHidden(LineageModel::ChangeColumn, !showChange);
    if (!showChange)
        numbers -= contentWidth(LineageModel::ChangeColumn);
    setColumnWidth(LineageModel::StepColumn,
                   std::max(m_delegate->titleLeft() + leastTitle, viewport()->width() - numbers));
}

/// A row without numbers says why, over the columns of all numbers.
void LineageView::spanFailures()
{
    clearSpans();
    for (int row = 0; row < m_model->rowCount(); ++row) {
        if (!m_model->row(row).instead.isEmpty())
            setSpan(row, LineageModel::LatencyColumn, 1,
                    LineageModel::ColumnCount - LineageModel::LatencyColumn);
    }
}

void LineageView::setViewed(const Viewed *viewed)
{
    m_delegate->setViewed(viewed);
    connect(viewed, &Viewed::changed, viewport(), qOverload<>(&QWidget::update));
}

void LineageView::setLitRow(int row)
{
    if (row == m_litRow)
        return;
    const auto repaint = [this](int r) {
        if (r >= 0)
            viewport()->update(0, rowViewportPosition(r), viewport()->width(), rowHeight(r));
    };
    repaint(m_litRow);
    m_litRow = row;
    repaint(m_litRow);
}

void LineageView::setBaselinePinned(bool pinned)
{
    if (pinned == m_baselineIsPinned)
        return;
    m_baselineIsPinned = pinned;
    arrange();
    viewport()->update();
}

void LineageView::resizeEvent(QResizeEvent *event)
{
    QTableView::resizeEvent(event);
    arrange();
}

/// Of rows that have just come, or have become higher, the scroll bar does not know yet.
void LineageView::scrollTo(const QModelIndex &index, ScrollHint hint)
{
    updateGeometries();
    QTableView::scrollTo(index, hint);
}

void LineageView::mouseMoveEvent(QMouseEvent *event)
{
    QTableView::mouseMoveEvent(event);
    emit rowHovered(rowAt(event->pos().y()));
}

void LineageView::leaveEvent(QEvent *event)
{
    QTableView::leaveEvent(event);
    emit rowHovered(-1);
}

void LineageView::changeEvent(QEvent *event)
{
    QTableView::changeEvent(event);
    // Once the header, whose texts are measured, has the new font too.
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        QMetaObject::invokeMethod(this, &LineageView::arrange, Qt::QueuedConnection);
}

} // namespace klineage::ui
