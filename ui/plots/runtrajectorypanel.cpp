// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/runtrajectorypanel.h"

#include "ui/plots/plotstyle.h"
#include "ui/plots/runglyph.h"
#include "ui/plots/table/figurestack.h"
#include "ui/plots/table/plottableview.h"
#include "ui/runs/runstore.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <QAction>
#include <QEvent>
#include <QMouseEvent>

#include <algorithm>
#include <array>
#include <cmath>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr std::size_t mostTraces = 4;
constexpr double hitDistance = 12.0;
constexpr int leastPlotHeight = 170; // with its axes

using Kind = RunTracePoint::Kind;

/// A plan or a question has no speedup, and is not drawn as one of zero; a failure is a point at zero.
bool isDrawn(const RunTracePoint &point)
{
    return point.speedup > 0 || point.kind != Kind::Other;
}

void spanHeight(QCPItemLine *line)
{
    for (QCPItemPosition *end : {line->start, line->end}) {
        end->setTypeX(QCPItemPosition::ptPlotCoords);
        end->setTypeY(QCPItemPosition::ptAxisRectRatio);
    }
}

} // namespace

RunTrajectoryPanel::RunTrajectoryPanel(RunStore *store, QWidget *parent)
    : QWidget(parent)
    , m_store(store)
    , m_plot(new QCustomPlot)
    , m_unity(new QCPItemLine(m_plot))
    , m_unityText(new QCPItemText(m_plot))
    , m_budget(new QCPItemLine(m_plot))
    , m_budgetText(new QCPItemText(m_plot))
    , m_load(new QCPItemRect(m_plot))
    , m_loadText(new QCPItemText(m_plot))
    , m_caption(new QCPItemText(m_plot))
{
    m_plot->setAccessibleName(tr("Trajectory of the run"));
    m_stack =
        new FigureStack(this, m_plot, QStringLiteral("runTrajectory"),
                        {tr("Fit the run's trajectory"), tr("The run's trajectory as a table, and back")});
    connect(m_stack->fitAction(), &QAction::triggered, this, &RunTrajectoryPanel::refresh);
    m_stack->table()->setMaker([this] { return runTraceTable(m_traces); });
    connect(m_stack->table(), &PlotTableView::rowChosen, this, [this](const QString &id) {
        m_store->setCurrent(id.section(QLatin1Char('#'), 0, -2), id.section(QLatin1Char('#'), -1).toInt());
    });
    // Below the axes, so that it hides no step.
    m_plot->plotLayout()->addElement(1, 0, m_plot->legend);
    m_plot->plotLayout()->setRowStretchFactor(1, 0.001);
    m_plot->plotLayout()->setRowSpacing(0);
    m_plot->legend->setMargins(QMargins(0, 0, 0, 2));
    m_plot->legend->setRowSpacing(0);

    spanWidthAtOne(m_unity);
    spanHeight(m_budget);
    for (QCPItemPosition *corner : {m_load->topLeft, m_load->bottomRight}) {
        corner->setTypeX(QCPItemPosition::ptPlotCoords);
        corner->setTypeY(QCPItemPosition::ptAxisRectRatio);
    }
    for (QCPItemText *text : {m_budgetText, m_loadText}) {
        text->position->setTypeX(QCPItemPosition::ptPlotCoords);
        text->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
        // Below the caption: at the bottom is where runs begin.
        text->setPadding(QMargins(0, m_plot->fontMetrics().height() + 2, 0, 0));
    }
    m_budgetText->setPositionAlignment(Qt::AlignRight | Qt::AlignTop);
    m_loadText->setPositionAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_caption->position->setType(QCPItemPosition::ptAxisRectRatio);
    m_caption->position->setCoords(0.005, 0.0);
    m_caption->setPositionAlignment(Qt::AlignLeft | Qt::AlignTop);

    spareAxes(m_plot);
    connect(m_plot, &QCustomPlot::mouseMove, this,
            [this](QMouseEvent *event) { showCaption(hitAt(event->pos())); });
    connect(m_plot, &QCustomPlot::mousePress, this, [this](QMouseEvent *event) {
        const Hit hit = hitAt(event->pos());
        if (!hit.point || event->button() != Qt::LeftButton)
            return;
        // Selecting draws anew: what was hit does not outlive it.
        const QString run = hit.trace->run;
        const int step = hit.point->step;
        m_store->setCurrent(run, step);
    });
    connect(m_store, &RunStore::changed, this, &RunTrajectoryPanel::refresh);
    connect(m_store, &RunStore::currentChanged, this, &RunTrajectoryPanel::refresh);
    connect(m_store, &RunStore::stepChanged, this, &RunTrajectoryPanel::draw);
    refresh();
}

QPointF RunTrajectoryPanel::place(const RunTracePoint &point) const
{
    return {m_costs ? point.dollars : point.step, point.speedup};
}

void RunTrajectoryPanel::refresh()
{
    m_traces = tracesBeside(m_store->runs(), m_store->currentId(), mostTraces);
    m_costs = std::any_of(m_traces.begin(), m_traces.end(), [](const RunTrace &trace) {
        return !trace.points.empty() && trace.points.back().dollars > 0;
    });
    if (m_traces.empty()) {
        m_stack->showMessage(m_store->current() ? tr("The run has made no step yet.")
                                                : tr("Choose a run to see what its budget brought."));
        return;
    }
    double right = 0;
    double top = 1;
    for (const RunTrace &trace : m_traces) {
        for (const RunTracePoint &point : trace.points) {
            right = std::max(right, place(point).x());
            top = std::max({top, point.speedup, point.best});
        }
    }
    // The budget's line is shown where it is near; far away it would make the run a line of its own.
    const double cap = m_traces.front().capDollars;
    if (m_costs && cap > 0 && cap < 4 * right)
        right = std::max(right, cap);
    m_plot->xAxis->setRange(m_costs ? -0.02 * right : 0.5, m_costs ? right * 1.06 : right + 0.5);
    m_plot->yAxis->setRange(-0.06 * top, 1.3 * top);
    m_plot->xAxis->setLabel(m_costs ? tr("Dollars spent") : tr("Step (this author costs nothing)"));
    m_plot->yAxis->setLabel(tr("Speedup over %1").arg(m_traces.front().reference));
    m_stack->table()->outdate();
    m_stack->showFigure();
    draw();
}

void RunTrajectoryPanel::draw()
{
    m_stack->table()->select(QStringLiteral("%1#%2").arg(m_store->currentId()).arg(m_store->step()));
    stylePlot(m_plot, palette());
    m_plot->clearGraphs();
    // The run that is looked at is drawn last, above the others.
    for (std::size_t i = m_traces.size(); i-- > 0;)
        drawTrace(m_traces[i], i);
    showLegend();
    m_plot->legend->setBorderPen(Qt::NoPen);
    m_plot->legend->setBrush(Qt::NoBrush);
    drawGuides();
    showCaption({});
}

/// Only where the axes keep room: the names are also said on hovering.
void RunTrajectoryPanel::showLegend()
{
    const int wanted = static_cast<int>(m_traces.size()) * (m_plot->fontMetrics().height() + 2);
    const bool show = m_traces.size() > 1 && m_plot->height() - wanted >= leastPlotHeight;
    if (show == m_plot->legend->visible() && show == (m_plot->legend->layout() != nullptr))
        return;
    m_plot->legend->setVisible(show);
    // What is not visible takes its room all the same.
    if (show && !m_plot->legend->layout())
        m_plot->plotLayout()->addElement(1, 0, m_plot->legend);
    else if (!show && m_plot->legend->layout())
        m_plot->plotLayout()->take(m_plot->legend);
    m_plot->plotLayout()->simplify();
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void RunTrajectoryPanel::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    showLegend();
}

void RunTrajectoryPanel::drawTrace(const RunTrace &trace, std::size_t series)
{
    QCPGraph *line = m_plot->addGraph();
    styleSteps(line, series);
    line->setName(trace.name);
    if (m_traces.size() < 2)
        line->removeFromLegend();
    QPen pen = line->pen();
    if (series > 0)
        pen.setColor(blend(pen.color(), Theme::current().panel, 0.55));
    line->setPen(pen);
    for (const RunTracePoint &point : trace.points) {
        if (point.best > 0)
            line->addData(place(point).x(), point.best);
    }
    for (const Kind kind : {Kind::Other, Kind::Failed, Kind::Wrapper, Kind::Valid, Kind::Audited}) {
        QCPGraph *glyphs = m_plot->addGraph();
        glyphs->removeFromLegend();
        glyphs->setLineStyle(QCPGraph::lsNone);
        glyphs->setScatterStyle(runGlyph(kind, pen.color()));
        for (const RunTracePoint &point : trace.points) {
            if (point.kind == kind && isDrawn(point))
                glyphs->addData(place(point).x(), point.speedup);
        }
    }
    if (trace.run != m_store->currentId())
        return;
    for (const RunTracePoint &point : trace.points) {
        if (point.step != m_store->step() || !isDrawn(point))
            continue;
        QCPGraph *ring = m_plot->addGraph();
        ring->removeFromLegend();
        ring->setLineStyle(QCPGraph::lsNone);
        ring->setScatterStyle({QCPScatterStyle::ssCircle, QPen(Theme::current().accent, 2), Qt::NoBrush, 13});
        ring->addData(place(point).x(), point.speedup);
    }
}

void RunTrajectoryPanel::drawGuides()
{
    const Theme &theme = Theme::current();
    const double cap = m_traces.empty() ? 0 : m_traces.front().capDollars;
    const double load = m_traces.empty() ? 0 : m_traces.front().loadDollars;
    m_unity->setPen(QPen(theme.dim, 0, Qt::DashLine));
    nameReference(m_unityText, m_plot->axisRect(), m_traces.empty() ? QString() : m_traces.front().reference);
    m_caption->setColor(theme.text);
    m_budget->setVisible(m_costs && cap > 0);
    m_budgetText->setVisible(m_budget->visible());
    m_budget->setPen(QPen(theme.bad, 0, Qt::DashLine));
    m_budget->start->setCoords(cap, 0);
    m_budget->end->setCoords(cap, 1);
    m_budgetText->setText(tr("budget $%1 ").arg(cap, 0, 'g', 6));
    m_budgetText->setColor(theme.dim);
    m_budgetText->position->setCoords(cap, 0);
    m_load->setVisible(m_costs && load > 0);
    m_loadText->setVisible(m_load->visible());
    m_load->setPen(Qt::NoPen);
    m_load->setBrush(theme.hover);
    m_load->topLeft->setCoords(0, 0);
    m_load->bottomRight->setCoords(load, 1);
    m_loadText->setText(tr(" reading cards %1").arg(formatDollars(load)));
    m_loadText->setColor(theme.dim);
    m_loadText->position->setCoords(0, 0);
}

void RunTrajectoryPanel::showCaption(const Hit &hit)
{
    QString caption = tr("running best · ● valid · ◇ audited · × wrapper · △ failed");
    if (hit.point) {
        caption = hit.point->label + QStringLiteral(" · ") + formatDollars(hit.point->dollars);
        if (hit.point->speedup > 0)
            caption = formatSpeedup(hit.point->speedup) + QStringLiteral(" · ") + caption;
        if (m_traces.size() > 1)
            caption = hit.trace->name + QStringLiteral(" · ") + caption;
        m_plot->setAccessibleDescription(caption);
        caption = m_plot->fontMetrics().elidedText(caption, Qt::ElideRight, m_plot->axisRect()->width() - 12);
    }
    m_caption->setText(caption);
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

RunTrajectoryPanel::Hit RunTrajectoryPanel::hitAt(const QPoint &position) const
{
    Hit hit;
    double distance = hitDistance;
    for (const RunTrace &trace : m_traces) {
        for (const RunTracePoint &point : trace.points) {
            if (!isDrawn(point))
                continue;
            const QPointF at = place(point);
            const double away = std::hypot(m_plot->xAxis->coordToPixel(at.x()) - position.x(),
                                           m_plot->yAxis->coordToPixel(at.y()) - position.y());
            if (away < distance) {
                distance = away;
                hit = {&trace, &point};
            }
        }
    }
    return hit;
}

void RunTrajectoryPanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        draw();
}

} // namespace klineage::ui
