// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/exporter.h"

#include "ui/plots/plotexport.h"
#include "ui/plots/table/figurestack.h"
#include "ui/plots/table/plottableview.h"
#include "ui/style/segmentedswitch.h"
#include "ui/style/theme.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QApplication>
#include <QBuffer>
#include <QCoreApplication>
#include <QFileInfo>
#include <QLayout>
#include <QPixmap>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <QTreeView>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr char notExportedProperty[] = "notExported";
constexpr char paperProperty[] = "paper"; // a QSize: the least that it needs to be read
constexpr QSize smallestPaper(960, 480);
constexpr int highestPaper = 4000;

QString exporterText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Exporter", text);
}

/// While it lives, a panel is as it leaves the window: light, large enough to be read, and without what one can only press.
class OnPaper
{
public:
    explicit OnPaper(QWidget &panel)
        : m_panel(panel)
        , m_theme(Theme::choice())
        , m_size(panel.size())
    {
        Theme::apply(*qApp, ThemeChoice::Light);
        for (QWidget *child : panel.findChildren<QWidget *>()) {
            const bool isSwitch = qobject_cast<QTabBar *>(child) || qobject_cast<SegmentedSwitch *>(child)
                                  || qobject_cast<QAbstractButton *>(child)
                                  || child->property(notExportedProperty).toBool();
            if (isSwitch && !child->isHidden()) {
                child->hide();
                m_hidden << child;
            }
        }
        QSize paper = smallestPaper;
        for (const QWidget *child : panel.findChildren<QWidget *>()) {
            if (child->isVisibleTo(&panel))
                paper = paper.expandedTo(child->property(paperProperty).toSize());
        }
        panel.resize(m_size.expandedTo(paper));
        activateLayouts();
        // A table leaves with all of its rows.
        if (const QAbstractItemView *table = visibleTable(panel))
            panel.resize(panel.width(),
                         std::min(panel.height() + table->verticalScrollBar()->maximum(), highestPaper));
        activateLayouts();
    }
    ~OnPaper()
    {
        for (QWidget *child : std::as_const(m_hidden))
            child->show();
        m_panel.resize(m_size);
        activateLayouts();
        Theme::apply(*qApp, m_theme);
    }
    OnPaper(const OnPaper &) = delete;
    OnPaper &operator=(const OnPaper &) = delete;

private:
    void activateLayouts()
    {
        // Only the panel's own: what holds it would put it back to its size.
        if (m_panel.layout())
            m_panel.layout()->activate();
        for (QWidget *child : m_panel.findChildren<QWidget *>()) {
            if (child->layout())
                child->layout()->activate();
        }
    }

    QWidget &m_panel;
    ThemeChoice m_theme;
    QSize m_size;
    QList<QWidget *> m_hidden;
};

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

/// The number behind a text, with all of its digits, where the model has one (EditRole); else the text.
QString plainValue(const QModelIndex &index)
{
    const QVariant value = index.data(Qt::EditRole);
    bool isNumber = false;
    const double number = value.toDouble(&isNumber);
    if (isNumber && value.typeId() != QMetaType::QString)
        return QString::number(number, 'g', 12);
    return value.isValid() ? value.toString() : index.data().toString();
}

/// What a column is called in a file, with its unit (EditRole); else as on the screen.
QString plainHeader(const QAbstractItemModel &model, int column)
{
    const QVariant name = model.headerData(column, Qt::Horizontal, Qt::EditRole);
    return name.isValid() ? name.toString() : model.headerData(column, Qt::Horizontal).toString();
}

using Cell = QString (*)(const QModelIndex &);

QString shownValue(const QModelIndex &index)
{
    return index.data().toString();
}

/// Of branches those that are open, their depth as spaces.
void addRows(QList<QStringList> &rows, const QAbstractItemView &view, const QModelIndex &parent, int depth,
             Cell cell)
{
    const QAbstractItemModel *model = view.model();
    for (int row = 0; row < model->rowCount(parent); ++row) {
        QStringList cells;
        for (int column = 0; column < model->columnCount(parent); ++column) {
            if (isColumnHidden(view, column))
                continue;
            const QString text = cell(model->index(row, column, parent));
            cells << (column == 0 ? QString(2 * depth, QLatin1Char(' ')) + text : text);
        }
        rows << cells;
        const QModelIndex first = model->index(row, 0, parent);
        const auto *tree = qobject_cast<const QTreeView *>(&view);
        if (tree && tree->isExpanded(first))
            addRows(rows, view, first, depth + 1, cell);
    }
}

/// The header too, where the view has one.
QList<QStringList> rowsOf(const QAbstractItemView &view, Cell cell, bool plain)
{
    QList<QStringList> rows;
    const QAbstractItemModel *model = view.model();
    if (qobject_cast<const QTableView *>(&view)) {
        QStringList header;
        for (int column = 0; column < model->columnCount(); ++column) {
            if (!isColumnHidden(view, column))
                header << (plain ? plainHeader(*model, column)
                                 : model->headerData(column, Qt::Horizontal).toString());
        }
        rows << header;
    }
    addRows(rows, view, {}, 0, cell);
    return rows;
}

} // namespace

QAbstractItemView *visibleTable(const QWidget &panel)
{
    const auto isTable = [&panel](const QAbstractItemView *view) {
        return view && view->isVisibleTo(&panel) && view->model()
               && (qobject_cast<const QTableView *>(view) || qobject_cast<const QTreeView *>(view));
    };
    // Of several the one that has the focus, or had it last.
    if (auto *view = qobject_cast<QAbstractItemView *>(panel.focusWidget()); isTable(view))
        return view;
    for (QAbstractItemView *view : panel.findChildren<QAbstractItemView *>()) {
        if (isTable(view))
            return view;
    }
    return nullptr;
}

QAbstractItemView *exportedTable(const QWidget &panel)
{
    if (QAbstractItemView *shown = visibleTable(panel))
        return shown;
    for (const FigureStack *stack : panel.findChildren<FigureStack *>()) {
        if (!stack->isVisibleTo(&panel) || !stack->currentWidget()->inherits("QCustomPlot"))
            continue;
        stack->table()->fill();
        return stack->table();
    }
    return panel.findChild<QAbstractItemView *>(QStringLiteral("behindCanvas"));
}

QString tableAsCsv(const QAbstractItemView &view)
{
    QString csv;
    for (QStringList cells : rowsOf(view, plainValue, true)) {
        std::transform(cells.begin(), cells.end(), cells.begin(), quoted);
        csv += cells.join(QLatin1Char(',')) + QLatin1String("\r\n");
    }
    return csv;
}

QString tableAsText(const QAbstractItemView &view)
{
    const QList<QStringList> rows = rowsOf(view, shownValue, false);
    QList<qsizetype> widths;
    for (const QStringList &cells : rows) {
        widths.resize(std::max(widths.size(), cells.size()));
        for (qsizetype i = 0; i + 1 < cells.size(); ++i) // the last one ends with its line
            widths[i] = std::max(widths[i], cells[i].size());
    }
    QString text;
    for (const QStringList &cells : rows) {
        QString line;
        for (qsizetype i = 0; i < cells.size(); ++i)
            line += cells[i].leftJustified(widths[i] + (i + 1 < cells.size() ? 2 : 0));
        while (line.endsWith(QLatin1Char(' ')))
            line.chop(1);
        text += line + QLatin1Char('\n');
    }
    return text;
}

QString exportFilters(const QWidget &panel)
{
    QStringList filters{exporterText("PNG picture (*.png)"), exporterText("SVG drawing (*.svg)"),
                        exporterText("PDF page (*.pdf)")};
    if (exportedTable(panel))
        filters << exporterText("CSV table (*.csv)") << exporterText("Text in columns (*.txt)");
    return filters.join(QStringLiteral(";;"));
}

QString exportPanel(QWidget &panel, const QString &fileName)
{
    const QString suffix = QFileInfo(fileName).suffix().toLower();
    QByteArray bytes;
    using Draw = QByteArray (*)(QWidget &);
    const Draw draw = suffix == QLatin1String("png")   ? &asPng
                      : suffix == QLatin1String("svg") ? &drawnAsSvg
                      : suffix == QLatin1String("pdf") ? &drawnAsPdf
                                                       : static_cast<Draw>(nullptr);
    if (draw) {
        const OnPaper paper(panel);
        bytes = draw(panel);
    } else if (suffix == QLatin1String("csv") || suffix == QLatin1String("txt")) {
        const QAbstractItemView *table = exportedTable(panel);
        if (!table)
            return exporterText("Cannot export %1: the panel shows no table; choose a picture.")
                .arg(fileName);
        bytes = (suffix == QLatin1String("csv") ? tableAsCsv(*table) : tableAsText(*table)).toUtf8();
    } else {
        return exporterText("Cannot export %1: the name must end in .png, .svg, .pdf, .csv or .txt.")
            .arg(fileName);
    }
    return saveExport(bytes, fileName);
}

} // namespace klineage::ui
