// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/style/status.h"

#include <QFont>
#include <QWidget>

class QPainter;

namespace klineage::ui {

/// A small rounded label with a glyph and a word.
struct Chip {
    QString text;
    QString glyph;
    Tone tone = Tone::Neutral;
    friend bool operator==(const Chip &, const Chip &) = default;
};
[[nodiscard]] Chip chipOf(const StatusStyle &style);

/// Device-independent size of a chip that nothing is cut off from.
[[nodiscard]] QSize chipSize(const Chip &chip, const QFont &font);
/// Draws the chip at the left of rect, centred vertically; returns the rectangle it took.
QRect paintChip(QPainter *painter, const QRect &rect, const Chip &chip, const QFont &font);

/// A chip as a widget.
class ChipLabel : public QWidget
{
    Q_OBJECT

public:
    explicit ChipLabel(QWidget *parent = nullptr);

    void setChip(const Chip &chip); ///< an empty text hides it
    [[nodiscard]] const Chip &chip() const { return m_chip; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    Chip m_chip;
};

} // namespace klineage::ui
