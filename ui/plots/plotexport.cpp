// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/plotexport.h"

#include <QBuffer>
#include <QCoreApplication>
#include <QFileInfo>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

QString plotText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::PlotExport", text);
}

QByteArray plotAsPng(QCustomPlot &plot)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    plot.toPixmap(plot.width(), plot.height(), 2).save(&buffer, "PNG");
    return bytes;
}

/// While it lives, the plots it is given paint nothing.
class Unpainted : public QObject
{
public:
    explicit Unpainted(const QList<QCustomPlot *> &plots)
    {
        for (QCustomPlot *plot : plots)
            plot->installEventFilter(this);
    }

protected:
    bool eventFilter(QObject *, QEvent *event) override { return event->type() == QEvent::Paint; }
};

} // namespace

void drawWithPlots(QWidget &widget, QPaintDevice &device)
{
    QList<QCustomPlot *> plots = widget.findChildren<QCustomPlot *>();
    if (auto *self = qobject_cast<QCustomPlot *>(&widget))
        plots << self;
    QCPPainter painter;
    painter.begin(&device);
    painter.setMode(QCPPainter::pmVectorized);
    painter.setMode(QCPPainter::pmNoCaching);
    {
        const Unpainted unpainted(plots);
        widget.render(&painter);
    }
    for (QCustomPlot *plot : std::as_const(plots)) {
        if (plot != &widget && !plot->isVisibleTo(&widget))
            continue;
        painter.save();
        painter.translate(plot->mapTo(&widget, QPoint()));
        plot->toPainter(&painter, plot->width(), plot->height());
        painter.restore();
    }
    painter.end();
}

QByteArray drawnAsSvg(QWidget &widget)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(widget.size());
    generator.setViewBox(widget.rect());
    generator.setResolution(widget.logicalDpiX()); // else texts are as small as on 72 dots an inch
    generator.setTitle(widget.accessibleName());
    drawWithPlots(widget, generator);
    return bytes;
}

QByteArray drawnAsPdf(QWidget &widget)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    const int dpi = widget.logicalDpiX();
    writer.setResolution(dpi);
    writer.setPageSize(QPageSize(QSizeF(widget.size()) * 25.4 / dpi, QPageSize::Millimeter));
    writer.setPageMargins(QMarginsF());
    writer.setTitle(widget.accessibleName());
    drawWithPlots(widget, writer);
    return bytes;
}

QString saveExport(const QByteArray &bytes, const QString &fileName)
{
    QSaveFile file(fileName);
    if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit())
        return plotText("Cannot export %1: %2.").arg(fileName, file.errorString());
    return {};
}

QString savePlot(QCustomPlot &plot, const QString &fileName)
{
    const QString suffix = QFileInfo(fileName).suffix().toLower();
    QByteArray bytes;
    if (suffix == QLatin1String("png"))
        bytes = plotAsPng(plot);
    else if (suffix == QLatin1String("svg"))
        bytes = drawnAsSvg(plot);
    else if (suffix == QLatin1String("pdf"))
        bytes = drawnAsPdf(plot);
    else
        return plotText("Cannot export %1: the name must end in .png, .svg or .pdf.").arg(fileName);
    return saveExport(bytes, fileName);
}

} // namespace klineage::ui
