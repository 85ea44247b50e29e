// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph/lineagedelegate.h"

#include "ui/graph/graphpainter.h"
#include "ui/graph/lineageview.h"
#include "ui/models/lineagemodel.h"
#include "ui/models/viewed.h"
#include "ui/style/chip.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QPainter>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int numberMargin = 8;
constexpr int labelGap = 8;

/// With its distance from the number.
QString disturbedMark()
{
    return QStringLiteral("!\u2009");
}

bool isMain(const LineageRow &row)
{
    return row.kind == lineage::TableRow::Kind::State;
}

/// Of "STAGES 3 · gain 1.05× · 01-31 12:34" the last parts go first; where not even the first one has room the time alone stands.
QString fittingTitle(const QString &title, const QFontMetrics &metrics, int room)
{
    QString fitting = title;
    while (metrics.horizontalAdvance(fitting) > room && fitting.contains(titleSeparator()))
        fitting.truncate(fitting.lastIndexOf(titleSeparator()));
    return metrics.horizontalAdvance(fitting) > room ? title.section(QLatin1Char(' '), -1) : fitting;
}

} // namespace

LineageDelegate::LineageDelegate(const LineageModel *model, LineageView *view)
    : QStyledItemDelegate(view)
    , m_model(model)
    , m_view(view)
{}

int LineageDelegate::markWidth() const
{
    const auto &rows = m_model->rows();
    const bool isMarked = std::any_of(rows.begin(), rows.end(), [](const LineageRow &row) {
        return row.isDisturbed && row.instead.isEmpty();
    });
    return isMarked ? m_view->fontMetrics().horizontalAdvance(disturbedMark()) : 0;
}

void LineageDelegate::measure()
{
    QFont strong = m_view->font();
    strong.setWeight(QFont::DemiBold);
    const QFontMetrics metrics(strong);
    int width = metrics.horizontalAdvance(QStringLiteral("K00"));
    for (const LineageRow &row : m_model->rows())
        width = std::max(width, (isMain(row) ? metrics : m_view->fontMetrics()).horizontalAdvance(row.label));
    m_titleLeft = graphWidth() + width + labelGap;
}

void LineageDelegate::paint(QPainter *painter, const QStyleOptionViewItem &option,
                            const QModelIndex &index) const
{
    const Theme &theme = Theme::current();
    if (option.state & QStyle::State_Selected)
        painter->fillRect(option.rect,
                          m_view->hasFocus() ? theme.selection : blend(theme.selection, theme.panel, 0.75));
    else if (index.row() == m_view->litRow())
        painter->fillRect(option.rect, theme.hover);
    if (option.state & QStyle::State_Selected && m_view->hasFocus()
        && index.column() == LineageModel::StepColumn)
        painter->fillRect(QRect(option.rect.left(), option.rect.top(), 2, option.rect.height()),
                          theme.accent);
    painter->save();
    painter->setFont(option.font);
    switch (index.column()) {
    case LineageModel::StepColumn:
        paintStep(painter, option, index);
        break;
    case LineageModel::GateColumn:
        if (m_model->row(index.row()).verdict)
            paintStages(painter, option.rect, m_model->row(index.row()).stages);
        break;
    default:
        paintNumber(painter, option, index);
        break;
    }
    painter->restore();
}

void LineageDelegate::paintStep(QPainter *painter, const QStyleOptionViewItem &option,
                                const QModelIndex &index) const
{
    const Theme &theme = Theme::current();
    const LineageRow &row = m_model->row(index.row());
    paintGraphCell(painter, option.rect, row, option.state & QStyle::State_Selected);

    QFont strong = option.font;
    strong.setWeight(isMain(row) ? QFont::DemiBold : QFont::Normal);
    painter->setFont(strong);
    painter->setPen(isMain(row) ? theme.text : theme.dim);
    QRect text = option.rect.adjusted(graphWidth(), 0, -4, 0);
    painter->drawText(text, Qt::AlignVCenter | Qt::AlignLeft, row.label);

    text.setLeft(option.rect.left() + m_titleLeft);
    painter->setFont(option.font);
    if (isMain(row) && row.id == m_model->baseline() && m_view->baselineIsPinned()) {
        const Chip chip{LineageView::tr("baseline"), {}, Tone::Accent};
        const int width = chipSize(chip, option.font).width();
        paintChip(painter, QRect(text.right() - width, text.top(), width, text.height()), chip, option.font);
        text.setRight(text.right() - width - 6);
    }
    if (m_viewed && m_viewed->contains(row.viewedKey)) {
        const QString mark = LineageView::tr("viewed");
        painter->setFont(captionFont());
        const int width = painter->fontMetrics().horizontalAdvance(mark);
        if (option.fontMetrics.horizontalAdvance(row.title) + width + labelGap <= text.width()) {
            painter->setPen(theme.faint);
            painter->drawText(text, Qt::AlignVCenter | Qt::AlignRight, mark);
            text.setRight(text.right() - width - labelGap);
        }
        painter->setFont(option.font);
        painter->setPen(isMain(row) ? theme.text : theme.dim);
    }
    const bool isBranch = row.kind == lineage::TableRow::Kind::Branch;
    const QString title = isBranch ? fittingTitle(row.title, option.fontMetrics, text.width()) : row.title;
    painter->drawText(text, Qt::AlignVCenter | Qt::AlignLeft,
                      option.fontMetrics.elidedText(title, Qt::ElideRight, text.width()));
}

void LineageDelegate::paintNumber(QPainter *painter, const QStyleOptionViewItem &option,
                                  const QModelIndex &index) const
{
    const Theme &theme = Theme::current();
    const LineageRow &row = m_model->row(index.row());
    QColor color = isMain(row) ? theme.text : theme.dim;
    if (!row.isCorrect)
        color = row.verdict ? toneColor(row.verdict->tone) : theme.faint;
    else if (row.isElsewhere)
        color = theme.dim;
    else if (index.column() == LineageModel::ChangeColumn)
        color = toneColor(row.stepTone);
    else if (index.column() == LineageModel::ReferenceColumn && row.referenceSpeedup
             && *row.referenceSpeedup >= 1 && isMain(row))
        color = theme.good;
    painter->setPen(color);
    const QRect place = option.rect.adjusted(2, 0, -numberMargin, 0);
    QString text = index.data().toString();
    if (index.column() == LineageModel::ReferenceColumn || !row.instead.isEmpty())
        text = option.fontMetrics.elidedText(text, Qt::ElideRight, place.width());
    painter->drawText(place, Qt::AlignVCenter | Qt::AlignRight, text);
    if (index.column() == LineageModel::LatencyColumn && row.isDisturbed) {
        painter->setPen(theme.warn);
        const int left = option.fontMetrics.horizontalAdvance(text);
        painter->drawText(place.adjusted(0, 0, -left, 0), Qt::AlignVCenter | Qt::AlignRight, disturbedMark());
    }
}

} // namespace klineage::ui
