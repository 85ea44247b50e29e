// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/trajectorypanel.h"

#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/manypoints.h"
#include "ui/plots/plotstyle.h"
#include "ui/plots/table/figurestack.h"
#include "ui/plots/table/plottableview.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <QAction>
#include <QEvent>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>
#include <map>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

bool isUnpaired(const TrajectoryPoint &point)
{
    return point.kind == TrajectoryPoint::Kind::Unpaired;
}

} // namespace

TrajectoryPanel::TrajectoryPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_plot(new QCustomPlot)
    , m_best(m_plot->addGraph())
    , m_valid(new ManyPoints(m_plot->xAxis, m_plot->yAxis))
    , m_unpaired(new ManyPoints(m_plot->xAxis, m_plot->yAxis))
    , m_failed(new ManyPoints(m_plot->xAxis, m_plot->yAxis))
    , m_current(m_plot->addGraph())
    , m_hovered(m_plot->addGraph())
    , m_unity(new QCPItemLine(m_plot))
    , m_unityText(new QCPItemText(m_plot))
    , m_caption(new QCPItemText(m_plot))
{
    m_plot->setAccessibleName(tr("Trajectory of the lineage's trials"));
    m_stack = new FigureStack(this, m_plot, QStringLiteral("trajectory"),
                              {tr("Fit the trajectory"), tr("The trajectory as a table, and back")});
    connect(m_stack->fitAction(), &QAction::triggered, this, &TrajectoryPanel::refresh);
    m_stack->table()->setMaker([this] { return trajectoryTable(m_trajectory); });
    connect(m_stack->table(), &PlotTableView::rowChosen, m_selection, &Selection::setRow);
    QSharedPointer<QCPAxisTickerFixed> ticker(new QCPAxisTickerFixed);
    ticker->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
    m_plot->xAxis->setTicker(ticker);

    spanWidthAtOne(m_unity);
    m_caption->position->setType(QCPItemPosition::ptAxisRectRatio);
    m_caption->position->setCoords(0.01, 0.0);
    m_caption->setPositionAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_caption->setTextAlignment(Qt::AlignLeft);
    connect(m_plot, &QCustomPlot::afterLayout, this, &TrajectoryPanel::fitCaption);

    spareAxes(m_plot);
    connect(m_plot, &QCustomPlot::mouseMove, this, [this](QMouseEvent *event) {
        const int point = pointAt(event->pos());
        m_selection->setHovered(point < 0 ? QString()
                                          : m_trajectory.points[static_cast<std::size_t>(point)].row);
    });
    connect(m_plot, &QCustomPlot::mousePress, this, [this](QMouseEvent *event) {
        const int point = pointAt(event->pos());
        if (point >= 0 && event->button() == Qt::LeftButton)
            m_selection->setRow(m_trajectory.points[static_cast<std::size_t>(point)].row);
    });
    connect(m_workspace, &WorkspaceModel::loaded, this, &TrajectoryPanel::refresh);
    connect(m_workspace, &WorkspaceModel::lineageChanged, this, &TrajectoryPanel::refresh);
    connect(m_selection, &Selection::lineageChanged, this, &TrajectoryPanel::refresh);
    connect(m_selection, &Selection::rowChanged, this, &TrajectoryPanel::mark);
    connect(m_selection, &Selection::hoveredChanged, this, &TrajectoryPanel::mark);
    applyPalette();
    refresh();
}

void TrajectoryPanel::refresh()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    m_trajectory = lineage ? lineageTrajectory(*lineage) : Trajectory();
    if (m_trajectory.points.empty()) {
        m_stack->showMessage(
            lineage
                ? tr("This lineage has no recorded trial yet. Gate a state with Ctrl+Enter in the editor.")
                : tr("Select a lineage to see how its trials went."));
        return;
    }
    QVector<double> trials;
    QVector<double> best;
    struct Cloud {
        QVector<double> x;
        QVector<double> y;
    };
    std::map<TrajectoryPoint::Kind, Cloud> clouds;
    double top = 1;
    const std::vector<double> running = m_trajectory.runningBest();
    for (std::size_t i = 0; i < m_trajectory.points.size(); ++i) {
        const TrajectoryPoint &point = m_trajectory.points[i];
        trials.append(point.trial);
        best.append(running[i]);
        clouds[point.kind].x.append(point.trial);
        clouds[point.kind].y.append(point.speedup);
        top = std::max(top, point.speedup);
    }
    m_best->setData(trials, best, true);
    for (const auto &[graph, kind] : {std::pair(m_valid, TrajectoryPoint::Kind::Valid),
                                      std::pair(m_unpaired, TrajectoryPoint::Kind::Unpaired),
                                      std::pair(m_failed, TrajectoryPoint::Kind::Failed)})
        graph->setData(clouds[kind].x, clouds[kind].y, true);
    m_plot->xAxis->setRange(0.5, static_cast<double>(trials.size()) + 0.5);
    m_plot->yAxis->setRange(-0.06 * top, 1.3 * top);
    // Without its routine, for which an axis has no room: that is in the table, and beside the line at 1.
    const QString against = m_trajectory.reference.section(QLatin1Char('/'), 0, 0);
    m_plot->yAxis->setLabel(m_trajectory.isPaired ? tr("Speedup over %1").arg(against)
                                                  : tr("≈ over %1, not paired").arg(against));
    nameReference(m_unityText, m_plot->axisRect(), m_trajectory.reference);
    const QString device = m_trajectory.device;
    m_plot->xAxis->setLabel(device.isEmpty() ? tr("Trial, in the order recorded")
                                             : tr("Trial on %1, in the order recorded").arg(device));
    m_stack->table()->outdate();
    m_stack->showFigure();
    mark();
}

int TrajectoryPanel::pointOfRow(const QString &row) const
{
    const auto found = std::find_if(m_trajectory.points.begin(), m_trajectory.points.end(),
                                    [&](const TrajectoryPoint &point) { return point.row == row; });
    return found == m_trajectory.points.end() || row.isEmpty()
               ? -1
               : static_cast<int>(found - m_trajectory.points.begin());
}

void TrajectoryPanel::mark()
{
    const auto place = [this](QCPGraph *graph, int point) {
        graph->data()->clear();
        if (point >= 0)
            graph->addData(m_trajectory.points[static_cast<std::size_t>(point)].trial,
                           m_trajectory.points[static_cast<std::size_t>(point)].speedup);
    };
    const int current = pointOfRow(m_selection->row());
    const int hovered = pointOfRow(m_selection->hovered());
    place(m_current, current);
    place(m_hovered, hovered);
    m_stack->table()->select(m_selection->row());
    const int shown = hovered >= 0 ? hovered : current;
    m_captionParts = {m_trajectory.elsewhereInWords(),
                      std::any_of(m_trajectory.points.begin(), m_trajectory.points.end(), isUnpaired)
                          ? tr("running best · ● valid · ○ not paired · △ failed")
                          : tr("running best · ● valid · △ failed")};
    m_captionParts.removeAll(QString());
    if (shown >= 0) {
        const TrajectoryPoint &point = m_trajectory.points[static_cast<std::size_t>(shown)];
        m_captionParts = {point.kind == TrajectoryPoint::Kind::Failed ? tr("%1 · failed").arg(point.label)
                          : isUnpaired(point)
                              ? tr("%1 · ≈ %2, not paired").arg(point.label, formatSpeedup(point.speedup))
                              : tr("%1 · %2").arg(point.label, formatSpeedup(point.speedup))};
    }
    const QString summary = inWords();
    m_plot->setAccessibleDescription(shown >= 0 ? m_captionParts.front() + QStringLiteral("; ") + summary
                                                : summary);
    fitCaption();
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

/// In one line, else in several; what is cut even so is whole in the tool tip.
void TrajectoryPanel::fitCaption()
{
    const QFontMetrics metrics = m_plot->fontMetrics();
    const int room = m_plot->axisRect()->width() - 12;
    const QString whole = m_captionParts.join(QStringLiteral(" · "));
    QStringList lines = metrics.horizontalAdvance(whole) <= room ? QStringList{whole} : m_captionParts;
    bool isCut = false;
    for (QString &line : lines) {
        const QString fitted = metrics.elidedText(line, Qt::ElideRight, room);
        isCut = isCut || fitted != line;
        line = fitted;
    }
    m_caption->setText(lines.join(QLatin1Char('\n')));
    m_plot->setToolTip(isCut ? whole : QString());
}

/// For assistive technology: what a look at the curve says.
QString TrajectoryPanel::inWords() const
{
    const std::vector<double> running = m_trajectory.runningBest();
    if (running.empty())
        return {};
    const auto failed =
        std::count_if(m_trajectory.points.begin(), m_trajectory.points.end(),
                      [](const TrajectoryPoint &p) { return p.kind == TrajectoryPoint::Kind::Failed; });
    QStringList words{m_trajectory.isPaired
                          ? tr("%1 trials, %2 failed; the best runs at %3 the speed of %4")
                                .arg(running.size())
                                .arg(failed)
                                .arg(formatSpeedup(running.back()), m_trajectory.reference)
                          : tr("%1 trials, %2 failed; the best runs at %3 the speed of %4, not paired")
                                .arg(running.size())
                                .arg(failed)
                                .arg(formatSpeedup(running.back()), m_trajectory.reference)};
    if (!m_trajectory.elsewhere.empty())
        words << m_trajectory.elsewhereInWords();
    return words.join(QStringLiteral("; "));
}

int TrajectoryPanel::pointAt(const QPoint &position) const
{
    int nearest = -1;
    double distance = 12.0;
    for (std::size_t i = 0; i < m_trajectory.points.size(); ++i) {
        const double dx = m_plot->xAxis->coordToPixel(m_trajectory.points[i].trial) - position.x();
        const double dy = m_plot->yAxis->coordToPixel(m_trajectory.points[i].speedup) - position.y();
        if (std::hypot(dx, dy) < distance) {
            distance = std::hypot(dx, dy);
            nearest = static_cast<int>(i);
        }
    }
    return nearest;
}

void TrajectoryPanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        applyPalette();
}

void TrajectoryPanel::leaveEvent(QEvent *event)
{
    QWidget::leaveEvent(event);
    m_selection->setHovered({});
}

void TrajectoryPanel::applyPalette()
{
    const Theme &theme = Theme::current();
    stylePlot(m_plot, palette());
    styleSteps(m_best, 0);
    stylePoints(m_valid, 0);
    stylePoints(m_unpaired, 0);
    m_unpaired->setScatterStyle(
        QCPScatterStyle(QCPScatterStyle::ssCircle, m_unpaired->pen(), Qt::NoBrush, 6));
    m_failed->setLineStyle(QCPGraph::lsNone);
    m_failed->setScatterStyle(
        QCPScatterStyle(QCPScatterStyle::ssTriangle, QPen(theme.bad, 1.2), Qt::NoBrush, 8));
    m_current->setLineStyle(QCPGraph::lsNone);
    m_current->setScatterStyle(
        QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(theme.accent, 2), Qt::NoBrush, 12));
    m_hovered->setLineStyle(QCPGraph::lsNone);
    m_hovered->setScatterStyle(
        QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(theme.warn, 2), Qt::NoBrush, 12));
    m_unity->setPen(QPen(theme.dim, 0, Qt::DashLine));
    nameReference(m_unityText, m_plot->axisRect(), m_trajectory.reference);
    m_caption->setColor(theme.text);
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

} // namespace klineage::ui
