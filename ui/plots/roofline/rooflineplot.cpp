// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/roofline/rooflineplot.h"

#include "ui/plots/plotstyle.h"
#include "ui/plots/roofline/rooflinetable.h"
#include "ui/plots/table/figurestack.h"
#include "ui/plots/table/plottableview.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <QAction>
#include <QEvent>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr double nearPixels = 12;

/// Decades alone, with the unit.
class DecadeTicker : public QCPAxisTickerLog
{
public:
    explicit DecadeTicker(const QString &unit)
        : m_unit(unit)
    {
        setLogBase(10);
        setSubTickCount(0);
    }

protected:
    QString getTickLabel(double tick, const QLocale &, QChar, int) override
    {
        return formatQuantity(tick, m_unit);
    }

private:
    QString m_unit;
};

QString bytesInWords(gate::RooflineBytes bytes)
{
    return bytes == gate::RooflineBytes::Counted ? RooflinePlot::tr("FLOP/B, bytes counted in device memory")
                                                 : RooflinePlot::tr("FLOP/B, the fewest bytes needed");
}

QString ceilingName(const gate::RooflineCeiling &ceiling)
{
    return RooflinePlot::tr("%1 %2").arg(QString::fromStdString(ceiling.name),
                                         formatQuantity(ceiling.perSecond, ceiling.isBandwidth
                                                                               ? QStringLiteral("B/s")
                                                                               : QStringLiteral("FLOP/s")));
}

QString ceilingInWords(const gate::RooflineCeiling &ceiling)
{
    return RooflinePlot::tr("%1, %2").arg(ceilingName(ceiling), QString::fromStdString(ceiling.source));
}

QCPItemText *addText(QCustomPlot *plot, const QString &text)
{
    auto *item = new QCPItemText(plot);
    item->setText(text);
    item->setFont(plot->xAxis->tickLabelFont());
    item->position->setType(QCPItemPosition::ptAbsolute);
    return item;
}

/// Points of one look, without a line between them.
QCPGraph *addPoints(QCustomPlot *plot, const QColor &color, bool filled)
{
    QCPGraph *graph = plot->addGraph();
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, QPen(color, 1.2),
                                           filled ? QBrush(color) : QBrush(Theme::current().panel), 6));
    return graph;
}

QCPGraph *addRing(QCustomPlot *plot, const QColor &color)
{
    QCPGraph *graph = plot->addGraph();
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(color, 2), Qt::NoBrush, 12));
    return graph;
}

} // namespace

RooflinePlot::RooflinePlot(QWidget *parent)
    : QWidget(parent)
    , m_plot(new QCustomPlot)
{
    m_plot->setAccessibleName(tr("Roofline of the lineage's states"));
    m_stack = new FigureStack(this, m_plot, QStringLiteral("roofline"),
                              {tr("Fit the roofline"), tr("The roofline as a table, and back")});
    connect(m_stack->fitAction(), &QAction::triggered, this, &RooflinePlot::fit);
    m_stack->table()->setMaker([this] { return rooflineTable(m_view); });
    connect(m_stack->table(), &PlotTableView::rowChosen, this, &RooflinePlot::chosen);
    for (QCPAxis *axis : {m_plot->xAxis, m_plot->yAxis})
        axis->setScaleType(QCPAxis::stLogarithmic);
    m_plot->xAxis->setTicker(QSharedPointer<QCPAxisTicker>(new DecadeTicker({})));
    m_plot->yAxis->setTicker(QSharedPointer<QCPAxisTicker>(new DecadeTicker(QStringLiteral("FLOP/s"))));
    m_plot->yAxis->setLabel(tr("FLOP/s"));
    connect(m_plot, &QCustomPlot::afterLayout, this, &RooflinePlot::placeTexts);
    connect(m_plot, &QCustomPlot::mouseMove, this,
            [this](QMouseEvent *event) { emit hovered(pointAt(event->pos())); });
    connect(m_plot, &QCustomPlot::mousePress, this, [this](QMouseEvent *event) {
        const QString id = pointAt(event->pos());
        if (!id.isEmpty() && event->button() == Qt::LeftButton)
            emit chosen(id);
    });
    draw();
}

void RooflinePlot::setView(const RooflineView &view)
{
    m_view = view;
    draw();
}

void RooflinePlot::setHovered(const QString &id)
{
    if (id == m_hovered)
        return;
    m_hovered = id;
    markPoints();
}

QString RooflinePlot::caption() const
{
    return m_caption ? m_caption->text() : QString();
}

void RooflinePlot::draw()
{
    m_plot->clearPlottables();
    m_plot->clearItems();
    m_ceilings.clear();
    m_names.clear();
    m_places.clear();
    m_caption = m_notice = nullptr;
    m_current = m_pointed = nullptr;
    stylePlot(m_plot, palette());
    const bool isEmpty = m_view.path.points.empty() || !m_view.path.missing.empty();
    m_plot->setAccessibleDescription(inWords());
    m_stack->table()->outdate();
    m_stack->table()->select(m_view.selected);
    if (isEmpty) {
        m_stack->showMessage(QString::fromStdString(m_view.path.missing));
        return;
    }
    m_stack->showFigure();
    m_plot->xAxis->setLabel(bytesInWords(m_view.path.bytes));
    drawCeilings();
    drawPoints();
    m_caption = addText(m_plot, {});
    m_caption->setColor(Theme::current().text);
    m_caption->setPositionAlignment(Qt::AlignLeft | Qt::AlignBottom);
    m_caption->setClipToAxisRect(false);
    // Above the axes, where it covers nothing.
    m_plot->axisRect()->setMinimumMargins(QMargins(0, QFontMetrics(m_caption->font()).height() + 4, 12, 0));
    QStringList notices;
    for (const std::string &notice : m_view.path.notices)
        notices << QString::fromStdString(notice);
    m_notice = addText(m_plot, notices.join(QLatin1Char(' ')));
    m_notice->setColor(Theme::current().dim);
    m_notice->setPositionAlignment(Qt::AlignLeft | Qt::AlignBottom);
    QStringList tips;
    for (const gate::RooflineCeiling &ceiling : m_view.path.ceilings)
        tips << ceilingInWords(ceiling);
    m_plot->setToolTip((tips + notices).join(QLatin1Char('\n')));
    fit();
    markPoints();
}

/// Both ends of the path, the bend of the highest roof, and room for names above it.
void RooflinePlot::fit()
{
    if (m_view.path.points.empty())
        return;
    double bandwidth = 0;
    double peak = 0;
    for (const gate::RooflineCeiling &ceiling : m_view.path.ceilings)
        (ceiling.isBandwidth ? bandwidth : peak) =
            std::max(ceiling.isBandwidth ? bandwidth : peak, ceiling.perSecond);
    const auto [left, right] =
        std::minmax_element(m_view.path.points.begin(), m_view.path.points.end(),
                            [](const auto &a, const auto &b) { return a.intensity < b.intensity; });
    const auto [low, high] =
        std::minmax_element(m_view.path.points.begin(), m_view.path.points.end(),
                            [](const auto &a, const auto &b) { return a.perSecond < b.perSecond; });
    const double ridge = bandwidth > 0 && peak > 0 ? peak / bandwidth : left->intensity;
    m_plot->xAxis->setRange(std::min(left->intensity / 3, ridge / 30),
                            std::max(right->intensity * 4, ridge * 10));
    m_plot->yAxis->setRange(low->perSecond / 3, std::max(high->perSecond, peak) * 8);
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

/// Levels begin where the slope reaches them, and go on far beyond what is shown, for when it is dragged.
void RooflinePlot::drawCeilings()
{
    constexpr double farAway = 1e9;
    double bandwidth = 0;
    double peak = 0;
    for (const gate::RooflineCeiling &ceiling : m_view.path.ceilings) {
        if (ceiling.isBandwidth)
            bandwidth = ceiling.perSecond;
        else
            peak = std::max(peak, ceiling.perSecond);
    }
    std::size_t series = 0;
    for (const gate::RooflineCeiling &ceiling : m_view.path.ceilings) {
        if (ceiling.isBandwidth)
            addCeiling(ceiling, 1 / farAway, peak > 0 ? peak / bandwidth : farAway, series++);
        else
            addCeiling(ceiling, bandwidth > 0 ? ceiling.perSecond / bandwidth : 1 / farAway, farAway,
                       series++);
    }
}

void RooflinePlot::addCeiling(const gate::RooflineCeiling &ceiling, double fromX, double toX,
                              std::size_t series)
{
    const Theme &theme = Theme::current();
    Ceiling drawn;
    drawn.bandwidth = ceiling.isBandwidth ? ceiling.perSecond : 0;
    drawn.line = m_plot->addGraph();
    drawn.line->setPen(QPen(theme.dim, 0, seriesDash(series)));
    drawn.line->setData({fromX, toX},
                        {ceiling.isBandwidth ? fromX * ceiling.perSecond : ceiling.perSecond,
                         ceiling.isBandwidth ? toX * ceiling.perSecond : ceiling.perSecond},
                        true);
    drawn.whole = ceilingInWords(ceiling);
    drawn.brief = ceilingName(ceiling);
    drawn.name = addText(m_plot, drawn.whole);
    drawn.name->setColor(theme.dim);
    m_ceilings.push_back(drawn);
}

void RooflinePlot::drawPoints()
{
    const Theme &theme = Theme::current();
    m_path = new QCPCurve(m_plot->xAxis, m_plot->yAxis);
    m_path->setPen(QPen(seriesColor(0), 0));
    QCPGraph *others = addPoints(m_plot, theme.dim, false);
    QCPGraph *own = addPoints(m_plot, seriesColor(0), true);
    m_pointed = addRing(m_plot, theme.warn);
    m_current = addRing(m_plot, theme.accent);
    for (std::size_t i = 0; i < m_view.path.points.size(); ++i) {
        const gate::RooflinePoint &point = m_view.path.points[i];
        const bool isOnPath = i < m_view.length;
        if (isOnPath)
            m_path->addData(static_cast<double>(i), point.intensity, point.perSecond);
        (isOnPath ? own : others)->addData(point.intensity, point.perSecond);
        Name name;
        name.leader = new QCPItemLine(m_plot);
        name.leader->setPen(QPen(theme.dim, 0));
        for (QCPItemPosition *end : {name.leader->start, name.leader->end})
            end->setType(QCPItemPosition::ptAbsolute);
        const QString id = QString::fromStdString(point.id);
        name.text = addText(m_plot, id);
        name.text->setColor(isOnPath ? theme.text : theme.dim);
        if (id == m_view.selected) {
            QFont bold = name.text->font();
            bold.setBold(true);
            name.text->setFont(bold);
        }
        m_names.push_back(name);
    }
}

const gate::RooflinePoint *RooflinePlot::find(const QString &id) const
{
    const auto found = std::find_if(m_view.path.points.begin(), m_view.path.points.end(),
                                    [&](const auto &point) { return point.id == id.toStdString(); });
    return found == m_view.path.points.end() ? nullptr : &*found;
}

void RooflinePlot::markPoints()
{
    if (!m_caption)
        return;
    const auto ring = [this](QCPGraph *graph, const QString &id) {
        graph->data()->clear();
        const gate::RooflinePoint *point = find(id);
        if (point)
            graph->addData(point->intensity, point->perSecond);
        return point;
    };
    const gate::RooflinePoint *current = ring(m_current, m_view.selected);
    const gate::RooflinePoint *pointed = ring(m_pointed, m_hovered);
    const gate::RooflinePoint *shown = pointed ? pointed : current;
    m_caption->setText(shown ? inWords(*shown) : QString());
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

/// "K08: 702 TFLOP/s, 74.7 % of the bf16 roof, 628 FLOP/B"
QString RooflinePlot::inWords(const gate::RooflinePoint &point) const
{
    const QString rate = formatQuantity(point.perSecond, QStringLiteral("FLOP/s"));
    const QString intensity = formatQuantity(point.intensity, QStringLiteral("FLOP/B"));
    const auto [roof, most] = gate::roofAbove(m_view.path, point.intensity);
    if (!roof)
        return tr("%1: %2 at %3").arg(QString::fromStdString(point.id), rate, intensity);
    return tr("%1: %2, %3 of the %4 roof, %5")
        .arg(QString::fromStdString(point.id), rate,
             formatQuantity(100 * point.perSecond / most, QStringLiteral("%")),
             QString::fromStdString(roof->name), intensity);
}

/// For assistive technology: what a look at the picture says.
QString RooflinePlot::inWords() const
{
    if (!m_view.path.missing.empty())
        return QString::fromStdString(m_view.path.missing);
    QStringList words;
    for (const gate::RooflineCeiling &ceiling : m_view.path.ceilings)
        words << ceilingInWords(ceiling);
    for (const gate::RooflinePoint &point : m_view.path.points)
        words << inWords(point);
    return words.join(QStringLiteral("; "));
}

QString RooflinePlot::pointAt(const QPoint &position) const
{
    QString nearest;
    double distance = nearPixels;
    for (const gate::RooflinePoint &point : m_view.path.points) {
        const double dx = m_plot->xAxis->coordToPixel(point.intensity) - position.x();
        const double dy = m_plot->yAxis->coordToPixel(point.perSecond) - position.y();
        if (std::hypot(dx, dy) < distance) {
            distance = std::hypot(dx, dy);
            nearest = QString::fromStdString(point.id);
        }
    }
    return nearest;
}

void RooflinePlot::leaveEvent(QEvent *event)
{
    QWidget::leaveEvent(event);
    emit hovered({});
}

void RooflinePlot::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() != QEvent::PaletteChange)
        return;
    const QCPRange x = m_plot->xAxis->range(); // what was zoomed to stays
    const QCPRange y = m_plot->yAxis->range();
    draw();
    m_plot->xAxis->setRange(x);
    m_plot->yAxis->setRange(y);
}

} // namespace klineage::ui
