// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/report/figures.h"

#include <QTextObjectInterface>

namespace klineage::ui {

/// Draws <img src="NAME"> of a text document as the figure of that name, as wide as a page. The figures must outlive it.
class FigureObject
    : public QObject
    , public QTextObjectInterface
{
    Q_OBJECT
    Q_INTERFACES(QTextObjectInterface)

public:
    explicit FigureObject(const ReportFigures &figures);

    QSizeF intrinsicSize(QTextDocument *document, int position, const QTextFormat &format) override;
    void drawObject(QPainter *painter, const QRectF &place, QTextDocument *document, int position,
                    const QTextFormat &format) override;

private:
    [[nodiscard]] QByteArray svgOf(const QTextFormat &format) const;

    const ReportFigures &m_figures;
};

} // namespace klineage::ui
