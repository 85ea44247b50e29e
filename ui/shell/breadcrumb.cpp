// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/breadcrumb.h"

#include "core/lineage/step.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QMouseEvent>
#include <QPainter>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int leftMargin = 12;
constexpr int separatorWidth = 17;
constexpr int detailGap = 8;

} // namespace

Breadcrumb::Breadcrumb(WorkspaceModel *workspace, Selection *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
{
    setMouseTracking(true);
    setAccessibleName(tr("Steps of the lineage"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(workspace, &WorkspaceModel::loaded, this, &Breadcrumb::refresh);
    connect(workspace, &WorkspaceModel::lineageChanged, this, &Breadcrumb::refresh);
    connect(selection, &Selection::lineageChanged, this, &Breadcrumb::refresh);
    connect(selection, &Selection::rowChanged, this, &Breadcrumb::refresh);
    refresh();
}

void Breadcrumb::setDirection(Direction direction)
{
    m_direction = direction;
    refresh();
}

QSize Breadcrumb::sizeHint() const
{
    return {400, 28};
}

QSize Breadcrumb::minimumSizeHint() const
{
    return {100, 28};
}

void Breadcrumb::refresh()
{
    m_all.clear();
    if (const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey())) {
        const auto row = lineage::findRow(*lineage, m_selection->row().toStdString());
        const bool isState = row && lineage->findState(row->id) != nullptr;
        for (const lineage::State &state : lineage->states) {
            Item item;
            item.id = QString::fromStdString(state.id);
            item.label = &state == &lineage->states.back() && lineage->states.size() > 1
                             ? QStringLiteral("K*")
                             : item.id;
            item.isCurrent = row && (isState ? row->id : row->parent) == state.id;
            if (item.isCurrent)
                item.detail =
                    isState ? stepTitle(*lineage, state)
                            : QStringLiteral("%1 %2")
                                  .arg(row->id.starts_with("trial:") ? tr("branch")
                                                                     : QString::fromStdString(row->id),
                                       row->id.starts_with("trial:") ? QString()
                                                                     : QString::fromStdString(row->title))
                                  .trimmed();
            m_all.push_back(item);
        }
        if (m_direction == Direction::Backward)
            std::reverse(m_all.begin(), m_all.end());
    }
    arrange();
    update();
}

int Breadcrumb::widthOf(const Item &item) const
{
    const QFontMetrics strong(strongFont());
    int width = (item.isCurrent ? strong : fontMetrics()).horizontalAdvance(item.label);
    if (!item.detail.isEmpty())
        width +=
            detailGap + strong.horizontalAdvance(item.detail) + 4; // rounding must not cut the last letter
    return width;
}

/// The current step with its neighbours, as many on both sides as there is room for; "…" stands for the others.
void Breadcrumb::arrange()
{
    m_items.clear();
    if (m_all.empty())
        return;
    const auto found =
        std::find_if(m_all.begin(), m_all.end(), [](const Item &item) { return item.isCurrent; });
    auto first = found == m_all.end() ? m_all.begin() : found;
    auto last = first + 1;
    const int dots = fontMetrics().horizontalAdvance(QStringLiteral("…")) + separatorWidth;
    int room = width() - 2 * leftMargin - widthOf(*first);
    const auto needed = [&](const Item &item, bool isEnd) {
        return widthOf(item) + separatorWidth + (isEnd ? 0 : dots);
    };
    for (bool grew = true; grew;) {
        grew = false;
        if (first != m_all.begin()
            && room >= needed(*(first - 1), first - 1 == m_all.begin()) + (last == m_all.end() ? 0 : dots)) {
            --first;
            room -= widthOf(*first) + separatorWidth;
            grew = true;
        }
        if (last != m_all.end()
            && room >= needed(*last, last + 1 == m_all.end()) + (first == m_all.begin() ? 0 : dots)) {
            room -= widthOf(*last) + separatorWidth;
            ++last;
            grew = true;
        }
    }
    if (first != m_all.begin())
        m_items.push_back({{}, QStringLiteral("…"), {}, false, {}});
    m_items.insert(m_items.end(), first, last);
    if (last != m_all.end())
        m_items.push_back({{}, QStringLiteral("…"), {}, false, {}});
    int left = leftMargin;
    for (Item &item : m_items) {
        item.rect =
            QRect(left, 0, std::min(widthOf(item), std::max(0, width() - leftMargin - left)), height());
        left = item.rect.right() + 1 + separatorWidth;
    }
}

void Breadcrumb::paintEvent(QPaintEvent *)
{
    const Theme &theme = Theme::current();
    QPainter painter(this);
    for (const Item &item : m_items) {
        painter.setFont(item.isCurrent ? strongFont() : font());
        painter.setPen(item.isCurrent || (item.id == m_hovered && !item.id.isEmpty()) ? theme.text
                                                                                      : theme.dim);
        painter.drawText(item.rect, Qt::AlignVCenter | Qt::AlignLeft, item.label);
        if (!item.detail.isEmpty()) {
            const QFontMetrics metrics(strongFont());
            const QRect detail =
                item.rect.adjusted(metrics.horizontalAdvance(item.label) + detailGap, 0, 0, 0);
            painter.setPen(theme.accent);
            painter.drawText(detail, Qt::AlignVCenter | Qt::AlignLeft,
                             metrics.elidedText(item.detail, Qt::ElideRight, detail.width()));
        }
        if (&item != &m_items.back()) {
            painter.setFont(font());
            painter.setPen(theme.faint);
            painter.drawText(QRect(item.rect.right() + 1, 0, separatorWidth, height()), Qt::AlignCenter,
                             QStringLiteral("›"));
        }
    }
}

void Breadcrumb::resizeEvent(QResizeEvent *)
{
    arrange();
}

void Breadcrumb::mousePressEvent(QMouseEvent *event)
{
    for (const Item &item : m_items) {
        if (!item.id.isEmpty() && item.rect.contains(event->pos())) {
            m_selection->setRow(item.id);
            return;
        }
    }
}

void Breadcrumb::mouseMoveEvent(QMouseEvent *event)
{
    QString hovered;
    for (const Item &item : m_items) {
        if (item.rect.contains(event->pos()))
            hovered = item.id;
    }
    if (hovered == m_hovered)
        return;
    m_hovered = hovered;
    setCursor(hovered.isEmpty() ? Qt::ArrowCursor : Qt::PointingHandCursor);
    m_selection->setHovered(hovered);
    update();
}

void Breadcrumb::leaveEvent(QEvent *)
{
    m_hovered.clear();
    m_selection->setHovered({});
    update();
}

void Breadcrumb::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::FontChange)
        arrange();
    QWidget::changeEvent(event);
}

} // namespace klineage::ui
