// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/figureobject.h"

#include <QPainter>
#include <QSvgRenderer>
#include <QTextDocument>

namespace klineage::ui {

FigureObject::FigureObject(const ReportFigures &figures)
    : m_figures(figures)
{}

QSizeF FigureObject::intrinsicSize(QTextDocument *document, int, const QTextFormat &format)
{
    const QSizeF size = QSvgRenderer(svgOf(format)).viewBoxF().size();
    const double width = document->textWidth() - 2 * document->documentMargin();
    return size.width() > 0 ? QSizeF(width, width * size.height() / size.width()) : QSizeF();
}

void FigureObject::drawObject(QPainter *painter, const QRectF &place, QTextDocument *, int,
                              const QTextFormat &format)
{
    QSvgRenderer(svgOf(format)).render(painter, place);
}

QByteArray FigureObject::svgOf(const QTextFormat &format) const
{
    const auto found = m_figures.find(format.toImageFormat().name().toStdString());
    if (found == m_figures.end())
        return {};
    // Lines of one pixel would be as thin as the printer can, and their dashes as short.
    return QByteArray(found->second).replace("vector-effect=\"non-scaling-stroke\"", "");
}

} // namespace klineage::ui
