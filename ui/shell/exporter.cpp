// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/exporter.h"

#include "ui/plots/plotexport.h"

#include <QAbstractItemView>
#include <QBuffer>
#include <QCoreApplication>
#include <QFileInfo>
#include <QPdfWriter>
#include <QPixmap>
#include <QSaveFile>
#include <QSvgGenerator>
#include <QTableView>
#include <QTreeView>

namespace klineage::ui {

namespace {

QString exporterText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Exporter", text);
}

QByteArray asPng(QWidget &panel)
{
    constexpr double scale = 2;
    QPixmap pixmap(panel.size() * scale);
    pixmap.setDevicePixelRatio(scale);
    pixmap.fill(panel.palette().color(QPalette::Base));
    panel.render(&pixmap);
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    pixmap.save(&buffer, "PNG");
    return bytes;
}

QByteArray asSvg(QWidget &panel)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(panel.size());
    generator.setViewBox(panel.rect());
    generator.setTitle(panel.accessibleName());
    drawWithPlots(panel, generator);
    return bytes;
}

QByteArray asPdf(QWidget &panel)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setResolution(96);
    writer.setPageSize(QPageSize(QSizeF(panel.size()) * 25.4 / 96, QPageSize::Millimeter));
    writer.setPageMargins(QMarginsF());
    writer.setTitle(panel.accessibleName());
    drawWithPlots(panel, writer);
    return bytes;
}

QString quoted(QString text)
{
    if (!text.contains(QLatin1Char('"')) && !text.contains(QLatin1Char(','))
        && !text.contains(QLatin1Char('\n')))
        return text;
    return QLatin1Char('"') + text.replace(QLatin1Char('"'), QLatin1String("\"\"")) + QLatin1Char('"');
}

bool isColumnHidden(const QAbstractItemView &view, int column)
{
    if (const auto *table = qobject_cast<const QTableView *>(&view))
        return table->isColumnHidden(column);
    const auto *tree = qobject_cast<const QTreeView *>(&view);
    return tree && tree->isColumnHidden(column);
}

void addRows(QString &csv, const QAbstractItemView &view, const QModelIndex &parent, int depth)
{
    const QAbstractItemModel *model = view.model();
    for (int row = 0; row < model->rowCount(parent); ++row) {
        QStringList cells;
        for (int column = 0; column < model->columnCount(parent); ++column) {
            if (isColumnHidden(view, column))
                continue;
            const QString text = model->index(row, column, parent).data().toString();
            cells << quoted(column == 0 ? QString(2 * depth, QLatin1Char(' ')) + text : text);
        }
        csv += cells.join(QLatin1Char(',')) + QLatin1String("\r\n");
        const QModelIndex first = model->index(row, 0, parent);
        const auto *tree = qobject_cast<const QTreeView *>(&view);
        if (tree && tree->isExpanded(first))
            addRows(csv, view, first, depth + 1);
    }
}

} // namespace

QAbstractItemView *visibleTable(const QWidget &panel)
{
    const QList<QAbstractItemView *> views = panel.findChildren<QAbstractItemView *>();
    for (QAbstractItemView *view : views) {
        if (view->isVisibleTo(&panel) && view->model()
            && (qobject_cast<QTableView *>(view) || qobject_cast<QTreeView *>(view)))
            return view;
    }
    return nullptr;
}

QString tableAsCsv(const QAbstractItemView &view)
{
    QString csv;
    const QAbstractItemModel *model = view.model();
    QStringList header;
    for (int column = 0; column < model->columnCount(); ++column) {
        if (!isColumnHidden(view, column))
            header << quoted(model->headerData(column, Qt::Horizontal).toString());
    }
    if (qobject_cast<const QTableView *>(&view))
        csv += header.join(QLatin1Char(',')) + QLatin1String("\r\n");
    addRows(csv, view, {}, 0);
    return csv;
}

QString exportFilters(const QWidget &panel)
{
    QStringList filters{exporterText("PNG picture (*.png)"), exporterText("SVG drawing (*.svg)"),
                        exporterText("PDF page (*.pdf)")};
    if (visibleTable(panel))
        filters << exporterText("CSV table (*.csv)");
    return filters.join(QStringLiteral(";;"));
}

QString exportPanel(QWidget &panel, const QString &fileName)
{
    const QString suffix = QFileInfo(fileName).suffix().toLower();
    QByteArray bytes;
    if (suffix == QLatin1String("png")) {
        bytes = asPng(panel);
    } else if (suffix == QLatin1String("svg")) {
        bytes = asSvg(panel);
    } else if (suffix == QLatin1String("pdf")) {
        bytes = asPdf(panel);
    } else if (suffix == QLatin1String("csv")) {
        const QAbstractItemView *table = visibleTable(panel);
        if (!table)
            return exporterText("Cannot export %1: the panel shows no table; choose a picture.")
                .arg(fileName);
        bytes = tableAsCsv(*table).toUtf8();
    } else {
        return exporterText("Cannot export %1: the name must end in .png, .svg, .pdf or .csv.").arg(fileName);
    }
    QSaveFile file(fileName);
    if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit())
        return exporterText("Cannot export %1: %2.").arg(fileName, file.errorString());
    return {};
}

} // namespace klineage::ui
