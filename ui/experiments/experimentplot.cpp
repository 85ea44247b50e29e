// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/experimentplot.h"

#include "ui/plots/plotstyle.h"
#include "ui/plots/runglyph.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <QEvent>
#include <QLabel>
#include <QMouseEvent>
#include <QVBoxLayout>

#include <algorithm>
#include <array>
#include <cmath>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr const char *wholeName = "wholeName"; ///< property of a title
constexpr double hitPixels = 11.0;
constexpr double stripLow = 0.03; // of the axis' height: where failures stand, a row a policy
constexpr double stripStep = 0.045;
constexpr int lowHeight = 200;          // of the plot: below it the glyphs go unexplained
constexpr std::size_t mostLabelled = 2; // plots whose axes are named one by one

using Kind = RunTracePoint::Kind;

/// A failure was not timed: it has a place in dollars alone.
bool standsInStrip(const RunTracePoint &point)
{
    return point.speedup <= 0;
}

double stripOf(const PolicyCurve &policy)
{
    return stripLow + stripStep * static_cast<double>(policy.series);
}

/// The failures' rows stand below zero, where no speedup is.
class SpeedupTicker : public QCPAxisTicker
{
protected:
    QVector<double> createTickVector(double tickStep, const QCPRange &range) override
    {
        return QCPAxisTicker::createTickVector(tickStep, {std::max(0.0, range.lower), range.upper});
    }
};

QCPAxis *xAxisOf(QCPAxisRect *rect)
{
    return rect->axis(QCPAxis::atBottom);
}

QCPAxis *yAxisOf(QCPAxisRect *rect)
{
    return rect->axis(QCPAxis::atLeft);
}

/// From 0 to 1 over the height, whatever is zoomed.
QCPAxis *heightOf(QCPAxisRect *rect)
{
    return rect->axis(QCPAxis::atRight);
}

} // namespace

ExperimentPlot::ExperimentPlot(QWidget *parent)
    : QWidget(parent)
    , m_plot(new QCustomPlot)
    , m_caption(new QLabel)
{
    m_plot->setAccessibleName(tr("Running best of the experiment's runs against dollars"));
    m_plot->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    m_plot->setAutoAddPlottableToLegend(false);
    m_caption->setFont(captionFont());
    m_caption->setForegroundRole(QPalette::PlaceholderText);
    m_caption->setContentsMargins(10, 1, 8, 4);
    m_caption->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_plot, 1);
    layout->addWidget(m_caption);
    spareAxes(m_plot);
    connect(m_plot, &QCustomPlot::afterLayout, this, &ExperimentPlot::fitTitles);
    connect(m_plot, &QCustomPlot::mouseMove, this,
            [this](QMouseEvent *event) { showCaption(hitAt(event->pos())); });
    connect(m_plot, &QCustomPlot::mousePress, this, [this](QMouseEvent *event) {
        const Hit hit = hitAt(event->pos());
        if (hit.seed && event->button() == Qt::LeftButton)
            emit runClicked(hit.seed->run);
    });
    connect(m_plot, &QCustomPlot::mouseDoubleClick, this, [this](QMouseEvent *event) {
        const Hit hit = hitAt(event->pos());
        if (hit.seed)
            emit runActivated(hit.seed->run);
        else
            fit();
    });
    showCaption({});
}

QString ExperimentPlot::caption() const
{
    return m_caption->text();
}

void ExperimentPlot::show(const ExperimentCurves &curves, const QString &root)
{
    m_curves = curves;
    m_shown.clear();
    for (std::size_t i = 0; i < m_curves.roots.size(); ++i) {
        if (root.isEmpty() || m_curves.roots[i].root == root)
            m_shown.push_back(i);
    }
    build();
}

void ExperimentPlot::setLogarithmic(bool logarithmic)
{
    if (logarithmic == m_logarithmic)
        return;
    m_logarithmic = logarithmic;
    build();
}

void ExperimentPlot::setHighlighted(const QString &run)
{
    if (run == m_highlighted)
        return;
    m_highlighted = run;
    build();
}

void ExperimentPlot::fit()
{
    for (std::size_t i = 0; i < m_rects.size(); ++i)
        setRanges(m_curves.roots[m_shown[i]], m_rects[i]);
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

/// As many side by side as keeps each plot about half again as wide as high.
int ExperimentPlot::columnsFor(const QSize &size) const
{
    const int count = std::max(1, static_cast<int>(m_shown.size()));
    const double shape = size.height() > 0 ? static_cast<double>(size.width()) / size.height() : 1.5;
    return std::clamp(static_cast<int>(std::lround(std::sqrt(count * shape / 1.3))), 1, count);
}

void ExperimentPlot::build()
{
    m_plot->clearItems();
    m_plot->clearGraphs();
    m_plot->plotLayout()->clear();
    m_rects.clear();
    m_plot->setBackground(palette().color(QPalette::Base));
    auto *grid = new QCPLayoutGrid;
    grid->setRowSpacing(0);
    grid->setColumnSpacing(6);
    m_plot->plotLayout()->addElement(0, 0, grid);
    m_columns = columnsFor(m_plot->size());
    m_isLow = m_plot->height() < lowHeight;
    for (std::size_t i = 0; i < m_shown.size(); ++i) {
        const RootCurves &root = m_curves.roots[m_shown[i]];
        const int row = static_cast<int>(i) / m_columns * 2;
        const int column = static_cast<int>(i) % m_columns;
        // Where many are small the title names the reference, and the axis needs no room for it.
        const bool isLabelled = m_shown.size() <= mostLabelled || root.reference.isEmpty();
        const QString name = isLabelled ? root.root : tr("%1 over %2").arg(root.root, root.reference);
        auto *title = new QCPTextElement(m_plot, name, strongFont());
        title->setProperty(wholeName, name);
        title->setTextColor(Theme::current().text);
        title->setMargins(QMargins(0, 6, 0, 2));
        auto *rect = new QCPAxisRect(m_plot);
        rect->setMinimumSize(120, 80);
        grid->addElement(row, column, title);
        grid->addElement(row + 1, column, rect);
        grid->setRowStretchFactor(row, 0.001);
        m_rects.push_back(rect);
        addRoot(root, rect, i + static_cast<std::size_t>(m_columns) >= m_shown.size());
    }
    buildLegend();
    fit();
}

void ExperimentPlot::addRoot(const RootCurves &root, QCPAxisRect *rect, bool isLowest)
{
    for (QCPAxis *axis : rect->axes()) {
        axis->setLayer(QStringLiteral("axes"));
        axis->grid()->setLayer(QStringLiteral("grid"));
    }
    styleAxes(rect);
    if (isLowest)
        xAxisOf(rect)->setLabel(m_curves.costs ? tr("Dollars spent")
                                               : tr("Step (this author costs nothing)"));
    if (m_shown.size() <= mostLabelled)
        yAxisOf(rect)->setLabel(root.reference.isEmpty() ? tr("Speedup")
                                                         : tr("Speedup over %1").arg(root.reference));
    heightOf(rect)->setRange(0, 1);
    if (m_logarithmic) {
        yAxisOf(rect)->setScaleType(QCPAxis::stLogarithmic);
        yAxisOf(rect)->setTicker(QSharedPointer<QCPAxisTickerLog>::create());
        yAxisOf(rect)->setNumberFormat(QStringLiteral("gb"));
        yAxisOf(rect)->setNumberPrecision(2);
    } else {
        yAxisOf(rect)->setTicker(QSharedPointer<SpeedupTicker>::create());
    }
    addGuides(root, rect);
    for (const PolicyCurve &policy : root.policies) {
        for (const SeedCurve &seed : policy.seeds)
            addSeed(policy, seed, rect);
    }
    // The first policy is drawn last, above the others.
    for (auto policy = root.policies.rbegin(); policy != root.policies.rend(); ++policy)
        addMedian(*policy, rect);
    if (root.isEmpty()) {
        auto *none = new QCPItemText(m_plot);
        none->setClipAxisRect(rect);
        none->position->setAxes(xAxisOf(rect), heightOf(rect));
        none->position->setCoords(0.5, 0.6);
        none->setText(tr("No run has made a step yet."));
        none->setColor(Theme::current().dim);
    }
}

void ExperimentPlot::addGuides(const RootCurves &root, QCPAxisRect *rect)
{
    const Theme &theme = Theme::current();
    if (m_curves.costs && root.loadDollars > 0) {
        auto *load = new QCPItemRect(m_plot);
        load->setClipAxisRect(rect);
        load->setPen(Qt::NoPen);
        load->setBrush(blend(theme.text, theme.panel, 0.07));
        load->setLayer(QStringLiteral("background"));
        for (QCPItemPosition *corner : {load->topLeft, load->bottomRight})
            corner->setAxes(xAxisOf(rect), heightOf(rect));
        load->topLeft->setCoords(0, 1);
        load->bottomRight->setCoords(root.loadDollars, 0);
    }
    auto *unity = new QCPItemStraightLine(m_plot);
    unity->setClipAxisRect(rect);
    unity->point1->setAxes(xAxisOf(rect), yAxisOf(rect));
    unity->point2->setAxes(xAxisOf(rect), yAxisOf(rect));
    unity->point1->setCoords(0, 1);
    unity->point2->setCoords(1, 1);
    unity->setPen(QPen(theme.dim, 0, Qt::DashLine));
    if (m_curves.costs && root.capDollars > 0) {
        auto *budget = new QCPItemLine(m_plot);
        budget->setClipAxisRect(rect);
        budget->setPen(QPen(theme.bad, 0, Qt::DashLine));
        budget->start->setAxes(xAxisOf(rect), heightOf(rect));
        budget->end->setAxes(xAxisOf(rect), heightOf(rect));
        budget->start->setCoords(root.capDollars, 0);
        budget->end->setCoords(root.capDollars, 1);
    }
}

QCPGraph *ExperimentPlot::addGlyphs(QCPAxisRect *rect, bool inStrip)
{
    QCPGraph *graph = m_plot->addGraph(xAxisOf(rect), inStrip ? heightOf(rect) : yAxisOf(rect));
    graph->setLineStyle(QCPGraph::lsNone);
    return graph;
}

void ExperimentPlot::addSeed(const PolicyCurve &policy, const SeedCurve &seed, QCPAxisRect *rect)
{
    const bool isLit = seed.run == m_highlighted;
    const double strength = isLit ? 1 : m_highlighted.isEmpty() ? 0.55 : 0.2;
    const QColor color = blend(seriesColor(policy.series), Theme::current().panel, strength);
    QCPGraph *line = m_plot->addGraph(xAxisOf(rect), yAxisOf(rect));
    line->setLineStyle(QCPGraph::lsStepLeft);
    line->setPen(QPen(color, isLit ? 1.6 : 0, seriesDash(policy.series)));
    for (const RunTracePoint &point : seed.points) {
        if (point.best > 0)
            line->addData(m_curves.x(point), point.best);
    }
    for (const Kind kind : {Kind::Other, Kind::Failed, Kind::Wrapper, Kind::Valid, Kind::Audited}) {
        for (const bool inStrip : {false, true}) {
            QCPGraph *glyphs = nullptr;
            for (const RunTracePoint &point : seed.points) {
                // Steps that make no candidate (reading cards, "DONE") have nothing to stand for.
                const bool isNothing = point.step == 0 || (kind == Kind::Other && standsInStrip(point));
                if (point.kind != kind || isNothing || standsInStrip(point) != inStrip)
                    continue;
                if (!glyphs) {
                    glyphs = addGlyphs(rect, inStrip);
                    QCPScatterStyle style = runGlyph(kind, color);
                    QPen pen = style.pen();
                    pen.setColor(kind == Kind::Failed || kind == Kind::Wrapper
                                     ? blend(pen.color(), Theme::current().panel, isLit ? 1 : 0.2 + strength)
                                     : pen.color());
                    style.setPen(pen);
                    if (kind == Kind::Valid || kind == Kind::Failed)
                        style.setSize(isLit ? 7 : 5);
                    glyphs->setScatterStyle(style);
                }
                glyphs->addData(m_curves.x(point), inStrip ? stripOf(policy) : point.speedup);
            }
        }
    }
}

void ExperimentPlot::addMedian(const PolicyCurve &policy, QCPAxisRect *rect)
{
    if (policy.median.empty())
        return;
    QCPGraph *line = m_plot->addGraph(xAxisOf(rect), yAxisOf(rect));
    line->setLineStyle(QCPGraph::lsStepLeft);
    QColor color = seriesColor(policy.series);
    if (!m_highlighted.isEmpty())
        color = blend(color, Theme::current().panel, 0.6);
    line->setPen(QPen(color, 2.2, seriesDash(policy.series), Qt::FlatCap));
    for (const QPointF &point : policy.median) {
        if (point.y() > 0)
            line->addData(point.x(), point.y());
    }
}

/// The same dollars for every root; speeds as each root has them.
void ExperimentPlot::setRanges(const RootCurves &root, QCPAxisRect *rect)
{
    double right = 0;
    for (const std::size_t shown : m_shown)
        right = std::max(right, m_curves.roots[shown].right);
    // The budget's line is shown where it is near; far away it would squeeze the runs into a corner.
    if (m_curves.costs && root.capDollars < 4 * right)
        right = std::max(right, root.capDollars);
    if (root.isEmpty()) {
        xAxisOf(rect)->setRange(0, 1);
        yAxisOf(rect)->setRange(m_logarithmic ? 0.1 : 0, 1.3);
        return;
    }
    const double top = std::max(1.0, root.top);
    xAxisOf(rect)->setRange(-0.01 * right, 1.03 * right);
    if (m_logarithmic) {
        double low = 1;
        for (const PolicyCurve &policy : root.policies) {
            for (const SeedCurve &seed : policy.seeds) {
                for (const RunTracePoint &point : seed.points)
                    low = point.speedup > 0 ? std::min(low, point.speedup) : low;
            }
        }
        const double span = std::log(top / low) + 0.1;
        yAxisOf(rect)->setRange(low * std::exp(-0.2 * span), top * std::exp(0.08 * span));
    } else {
        // Zero stands above the failures' rows.
        const double strip = stripLow + stripStep * static_cast<double>(root.policies.size()) + 0.01;
        yAxisOf(rect)->setRange(-1.1 * top * strip / (1 - strip), 1.1 * top);
    }
}

QPointF ExperimentPlot::pixelOf(std::size_t shownRoot, const PolicyCurve &policy,
                                const RunTracePoint &point) const
{
    if (shownRoot >= m_rects.size())
        return {};
    QCPAxisRect *rect = m_rects[shownRoot];
    const double x = xAxisOf(rect)->coordToPixel(m_curves.x(point));
    return {x, standsInStrip(point) ? heightOf(rect)->coordToPixel(stripOf(policy))
                                    : yAxisOf(rect)->coordToPixel(point.speedup)};
}

ExperimentPlot::Hit ExperimentPlot::hitAt(const QPoint &position) const
{
    Hit hit;
    double nearest = hitPixels;
    for (std::size_t i = 0; i < m_rects.size(); ++i) {
        if (!m_rects[i]->rect().contains(position))
            continue;
        for (const PolicyCurve &policy : m_curves.roots[m_shown[i]].policies) {
            for (const SeedCurve &seed : policy.seeds) {
                for (const RunTracePoint &point : seed.points) {
                    const QPointF at = pixelOf(i, policy, point);
                    const double away = std::hypot(at.x() - position.x(), at.y() - position.y());
                    if (away >= nearest || (point.kind == Kind::Other && standsInStrip(point)))
                        continue;
                    nearest = away;
                    hit = {&policy, &seed, &point};
                }
            }
        }
    }
    return hit;
}

void ExperimentPlot::showCaption(const Hit &hit)
{
    QString text = tr("Thin: runs. Bold: median of those that are over, failures at their root's speed.");
    if (hit.point) {
        text = tr("%1, seed %2 · %3 · %4")
                   .arg(hit.policy->policy)
                   .arg(hit.seed->seed)
                   .arg(hit.point->label, formatDollars(hit.point->dollars));
        if (hit.point->speedup > 0)
            text += QStringLiteral(" · ") + formatSpeedup(hit.point->speedup);
    }
    m_caption->setText(text);
}

/// Names of roots begin and end alike: the middle of what is too long is left out.
void ExperimentPlot::fitTitles()
{
    for (QCPTextElement *title : m_plot->findChildren<QCPTextElement *>())
        title->setText(QFontMetrics(title->font())
                           .elidedText(title->property(wholeName).toString(), Qt::ElideMiddle,
                                       title->outerRect().width()));
}

void ExperimentPlot::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        build();
}

void ExperimentPlot::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    if (m_columns != columnsFor(m_plot->size()) || m_isLow != (m_plot->height() < lowHeight)
        || m_legendColumns != legendColumns())
        build();
}

} // namespace klineage::ui
