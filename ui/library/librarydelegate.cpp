// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/library/librarydelegate.h"

#include "ui/models/fuzzymatch.h"
#include "ui/models/librarymodel.h"
#include "ui/models/viewed.h"
#include "ui/style/chip.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QPainter>

namespace klineage::ui {

namespace {

constexpr int sideMargin = 10;

/// Draws text and, over it, the matched letters in the accent colour: the same glyphs at the same places.
void drawMatched(QPainter *painter, const QRect &rect, const QString &text, const QString &pattern)
{
    const QString shown = painter->fontMetrics().elidedText(text, Qt::ElideRight, rect.width());
    painter->drawText(rect, Qt::AlignVCenter | Qt::AlignLeft, shown);
    if (pattern.isEmpty())
        return;
    const auto match = fuzzyMatch(pattern, text);
    if (!match)
        return;
    painter->setPen(Theme::current().accent);
    for (const int position : match->positions) {
        if (position >= shown.size() || shown[position] != text[position])
            continue;
        const int left = painter->fontMetrics().horizontalAdvance(shown.left(position));
        painter->drawText(rect.adjusted(left, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft,
                          QString(shown[position]));
    }
}

} // namespace

QSize LibraryDelegate::sizeHint(const QStyleOptionViewItem &option, const QModelIndex &) const
{
    return {0, option.fontMetrics.height() + 8};
}

void LibraryDelegate::paintSection(QPainter *painter, const QStyleOptionViewItem &option,
                                   const QModelIndex &index) const
{
    const Theme &theme = Theme::current();
    const QRect rect = option.rect.adjusted(sideMargin + 1, 0, -sideMargin, -3);
    painter->setFont(captionFont());
    painter->setPen(theme.dim);
    QString text = index.data().toString();
    const QString count = index.data(LibraryModel::ValueRole).toString();
    if (!count.isEmpty())
        text += QStringLiteral("  ") + count;
    painter->drawText(rect, Qt::AlignBottom | Qt::AlignLeft, text);
}

/// Value or chip at the right end; returns the width it took.
int LibraryDelegate::paintRight(QPainter *painter, const QStyleOptionViewItem &option,
                                const QModelIndex &index) const
{
    const QRect rect = option.rect.adjusted(0, 0, -sideMargin, 0);
    const Chip chip = index.data(LibraryModel::ChipRole).value<Chip>();
    if (!chip.text.isEmpty()) {
        const QSize size = chipSize(chip, option.font);
        paintChip(painter, QRect(rect.right() - size.width() + 1, rect.top(), size.width(), rect.height()),
                  chip, option.font);
        return size.width() + sideMargin;
    }
    const QString value = index.data(LibraryModel::ValueRole).toString();
    if (value.isEmpty())
        return 0;
    painter->setPen(toneColor(static_cast<Tone>(index.data(LibraryModel::ValueToneRole).toInt())));
    painter->drawText(rect, Qt::AlignVCenter | Qt::AlignRight, value);
    return option.fontMetrics.horizontalAdvance(value) + sideMargin;
}

/// "viewed" before the chip, where the name leaves room for it; returns the width it took.
int LibraryDelegate::paintViewed(QPainter *painter, const QRect &rect, const QModelIndex &index) const
{
    const QString key = index.data(LibraryModel::ViewedKeyRole).toString();
    if (!m_viewed || key.isEmpty() || !m_viewed->contains(key))
        return 0;
    const int name = painter->fontMetrics().horizontalAdvance(index.data().toString());
    painter->setFont(captionFont());
    const int width = painter->fontMetrics().horizontalAdvance(tr("viewed"));
    if (name + width + sideMargin > rect.width())
        return 0;
    painter->setPen(Theme::current().faint);
    painter->drawText(rect, Qt::AlignVCenter | Qt::AlignRight, tr("viewed"));
    return width + sideMargin;
}

/// A dot behind the name, as the status bar has before a device, where there is room for it.
void LibraryDelegate::paintRunsHere(QPainter *painter, const QRect &rect)
{
    constexpr double radius = 2.5;
    constexpr int gap = 7;
    if (rect.width() < gap + 2 * radius)
        return;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(Qt::NoPen);
    painter->setBrush(Theme::current().good);
    painter->drawEllipse(QPointF(rect.left() + gap + radius, rect.center().y() + 1), radius, radius);
    painter->restore();
}

void LibraryDelegate::paint(QPainter *painter, const QStyleOptionViewItem &option,
                            const QModelIndex &index) const
{
    painter->save();
    if (LibraryModel::kindOf(index) == LibraryModel::Kind::Section) {
        paintSection(painter, option, index);
    } else {
        const Theme &theme = Theme::current();
        painter->setFont(option.font);
        const int right = paintRight(painter, option, index);
        painter->setPen(theme.text);
        const int mark = paintViewed(painter, option.rect.adjusted(0, 0, -sideMargin - right, 0), index);
        painter->setFont(option.font);
        painter->setPen(theme.text);
        const QRect rect = option.rect.adjusted(2, 0, -sideMargin - right - mark, 0);
        const QString title = index.data().toString();
        drawMatched(painter, rect, title, m_pattern);
        if (!index.data(LibraryModel::RunsHereRole).toString().isEmpty())
            paintRunsHere(painter, rect.adjusted(painter->fontMetrics().horizontalAdvance(title), 0, 0, 0));
    }
    painter->restore();
}

} // namespace klineage::ui
