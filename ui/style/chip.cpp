// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/chip.h"

#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QFontMetrics>
#include <QPainter>

namespace klineage::ui {

namespace {

constexpr int sidePadding = 7;
constexpr int glyphGap = 4;

QFont chipFont(const QFont &font)
{
    QFont small = font;
    small.setPointSizeF(font.pointSizeF() * 0.87);
    small.setWeight(QFont::Medium);
    return small;
}

int glyphWidth(const Chip &chip, const QFontMetrics &metrics)
{
    return chip.glyph.isEmpty() ? 0 : metrics.horizontalAdvance(chip.glyph) + glyphGap;
}

} // namespace

Chip chipOf(const StatusStyle &style)
{
    return {style.word, style.glyph, style.tone};
}

QSize chipSize(const Chip &chip, const QFont &font)
{
    const QFontMetrics metrics(chipFont(font));
    return {2 * sidePadding + glyphWidth(chip, metrics) + metrics.horizontalAdvance(chip.text),
            metrics.height() + 3};
}

QRect paintChip(QPainter *painter, const QRect &rect, const Chip &chip, const QFont &font)
{
    if (chip.text.isEmpty())
        return {rect.topLeft(), QSize(0, 0)};
    const QSize size = chipSize(chip, font);
    const QRect box(rect.left(), rect.top() + (rect.height() - size.height()) / 2,
                    std::min(size.width(), rect.width()), size.height());
    const Theme &theme = Theme::current();
    const QColor color = toneColor(chip.tone);
    const double radius = box.height() / 2.0;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(blend(color, theme.panel, 0.55), 1));
    painter->setBrush(blend(color, theme.panel, theme.isDark ? 0.12 : 0.07));
    painter->drawRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
    const QFont small = chipFont(font);
    const QFontMetrics metrics(small);
    painter->setFont(small);
    painter->setPen(color);
    const QRect inner = box.adjusted(sidePadding, 0, -sidePadding, 0);
    painter->drawText(inner, Qt::AlignVCenter | Qt::AlignLeft, chip.glyph);
    painter->drawText(inner.adjusted(glyphWidth(chip, metrics), 0, sidePadding, 0),
                      Qt::AlignVCenter | Qt::AlignLeft, chip.text);
    painter->restore();
    return box;
}

ChipLabel::ChipLabel(QWidget *parent)
    : QWidget(parent)
{
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void ChipLabel::setChip(const Chip &chip)
{
    if (m_chip == chip)
        return;
    m_chip = chip;
    setVisible(!chip.text.isEmpty());
    setAccessibleName(chip.text);
    updateGeometry();
    update();
}

QSize ChipLabel::sizeHint() const
{
    return chipSize(m_chip, font());
}

void ChipLabel::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.setOpacity(isEnabled() ? 1 : 0.45); // what holds no longer
    paintChip(&painter, rect(), m_chip, font());
}

} // namespace klineage::ui
