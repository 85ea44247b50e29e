// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/chainplot.h"

#include "ui/plots/plotstyle.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QCoreApplication>

#include <algorithm>
#include <cmath>
#include <limits>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr std::size_t mostLabels = 24;          ///< of more states they would cover each other
constexpr std::size_t mostCategories = 12;      ///< the same
constexpr std::ptrdiff_t mostNamedSiblings = 2; ///< attempts from one state
constexpr double steepFall = 0.22;              ///< of the axis, from one state to the next
constexpr int labelGap = 6;

QString chainText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::ChainPlot", text);
}

bool isTimed(const gate::Trial *trial)
{
    return trial && trial->verdict.status == gate::VerdictStatus::Correct && trial->latencyNs.value > 0;
}

/// 1, 2, 5 of each decade, or decades alone where there are many; latencies with their units.
class LatencyTicker : public QCPAxisTicker
{
protected:
    QVector<double> createTickVector(double tickStep, const QCPRange &range) override
    {
        const bool isWide = range.upper > 1e3 * range.lower;
        QVector<double> ticks;
        for (double decade = std::pow(10.0, std::floor(std::log10(range.lower))); decade <= range.upper;
             decade *= 10) {
            for (const double factor : {1.0, 2.0, 5.0}) {
                if (isWide && factor > 1)
                    break;
                ticks.append(decade * factor);
            }
        }
        const auto inside =
            std::count_if(ticks.begin(), ticks.end(), [&](double tick) { return range.contains(tick); });
        return inside >= 2 ? ticks : QCPAxisTicker::createTickVector(tickStep, range);
    }
    int getSubTickCount(double) override { return 0; }
    QString getTickLabel(double tick, const QLocale &, QChar, int) override { return formatLatency(tick); }
};

void addLabel(QCustomPlot &plot, const QPointF &at, const QString &text, const QColor &color,
              Qt::Alignment side)
{
    auto *label = new QCPItemText(&plot);
    label->setText(text);
    label->setFont(plot.xAxis->tickLabelFont());
    label->setColor(color);
    label->setPositionAlignment(side);
    label->setPadding(QMargins(labelGap, labelGap, labelGap, labelGap));
    label->position->setCoords(at);
}

QCPGraph *addGlyphs(QCustomPlot &plot, QCPScatterStyle::ScatterShape shape, const QColor &color, double size)
{
    QCPGraph *graph = plot.addGraph();
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(QCPScatterStyle(shape, QPen(color, 1.2), Qt::NoBrush, size));
    return graph;
}

/// All latencies, with room above for labels and below for what has none.
QCPRange latencyRange(const Chain &chain)
{
    double low = chain.referenceNs > 0 ? chain.referenceNs : std::numeric_limits<double>::max();
    double high = chain.referenceNs;
    const auto include = [&](double ns) {
        if (ns <= 0)
            return;
        low = std::min(low, ns);
        high = std::max(high, ns);
    };
    for (const ChainPoint &point : chain.points)
        include(point.ns);
    for (const ChainAttempt &attempt : chain.attempts)
        include(attempt.ns);
    if (high <= 0)
        return {1e3, 1e6};
    const double decades = std::max(std::log10(high / low), 0.3);
    return {low * std::pow(10.0, -0.16 * decades), high * std::pow(10.0, 0.16 * decades)};
}

void addStates(QCustomPlot &plot, const Chain &chain)
{
    const Theme &theme = Theme::current();
    QCPGraph *line = plot.addGraph();
    line->setPen(QPen(seriesColor(0), 0));
    line->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, seriesColor(0), seriesColor(0), 6));
    auto *bars = new QCPErrorBars(plot.xAxis, plot.yAxis);
    bars->removeFromLegend();
    bars->setDataPlottable(line);
    bars->setPen(QPen(seriesColor(0), 0));
    QSharedPointer<QCPAxisTickerText> names(new QCPAxisTickerText);
    const double height = std::log(plot.yAxis->range().upper / plot.yAxis->range().lower);
    for (std::size_t i = 0; i < chain.points.size(); ++i) {
        const ChainPoint &point = chain.points[i];
        const auto x = static_cast<double>(i);
        const bool isNamed = !point.category.isEmpty() && chain.points.size() <= mostCategories;
        names->addTick(x, isNamed ? point.id + QLatin1Char('\n') + point.category : point.id);
        line->addData(x, point.ns > 0 ? point.ns : qQNaN());
        bars->addData(point.ns - point.lowNs, point.highNs - point.ns);
        // Beside the line where it falls steeply: above the state it would be struck through.
        const bool isSteep = i > 0 && point.ns > 0 && chain.points[i - 1].ns > point.ns
                             && std::log(chain.points[i - 1].ns / point.ns) > steepFall * height
                             && chain.points.size() <= mostCategories;
        if (point.ns > 0 && !point.step.isEmpty() && chain.points.size() <= mostLabels)
            addLabel(plot, {x, point.highNs}, point.step, theme.text,
                     Qt::AlignBottom | (isSteep ? Qt::AlignLeft : Qt::AlignHCenter));
    }
    plot.xAxis->setTicker(names);
}

void addAttempts(QCustomPlot &plot, const Chain &chain, double bottom)
{
    const Theme &theme = Theme::current();
    QCPGraph *rejected = addGlyphs(plot, QCPScatterStyle::ssDiamond, theme.warn, 8);
    QCPGraph *failed = addGlyphs(plot, QCPScatterStyle::ssTriangle, theme.bad, 8);
    for (const ChainAttempt &attempt : chain.attempts) {
        (attempt.ns > 0 ? rejected : failed)->addData(attempt.place, attempt.ns > 0 ? attempt.ns : bottom);
        const auto siblings =
            std::count_if(chain.attempts.begin(), chain.attempts.end(), [&](const ChainAttempt &other) {
                return std::floor(other.place) == std::floor(attempt.place);
            });
        if (siblings <= mostNamedSiblings && chain.points.size() <= mostLabels)
            addLabel(plot, {attempt.place, attempt.ns > 0 ? attempt.ns : bottom}, attempt.id, theme.dim,
                     (attempt.ns > 0 ? Qt::AlignBottom : Qt::AlignTop) | Qt::AlignHCenter);
    }
}

void addReference(QCustomPlot &plot, const Chain &chain)
{
    const Theme &theme = Theme::current();
    QCPAxisRect *rect = plot.axisRect();
    rect->setAutoMargins(QCP::msLeft | QCP::msTop | QCP::msBottom);
    rect->setMargins(QMargins(0, 0, 2 * labelGap, 0));
    if (chain.referenceNs <= 0)
        return;
    auto *line = new QCPItemLine(&plot);
    for (QCPItemPosition *end : {line->start, line->end}) {
        end->setTypeX(QCPItemPosition::ptAxisRectRatio);
        end->setTypeY(QCPItemPosition::ptPlotCoords);
    }
    line->start->setCoords(0, chain.referenceNs);
    line->end->setCoords(1, chain.referenceNs);
    line->setPen(QPen(theme.dim, 0, Qt::DashLine));
    auto *name = new QCPItemText(&plot);
    name->setText(chain.reference + QLatin1Char('\n') + formatLatency(chain.referenceNs));
    name->setFont(plot.xAxis->tickLabelFont());
    name->setColor(theme.dim);
    name->setClipToAxisRect(false);
    name->setTextAlignment(Qt::AlignLeft);
    name->setPositionAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    name->setPadding(QMargins(labelGap, 0, 0, 0));
    name->position->setTypeX(QCPItemPosition::ptAxisRectRatio);
    name->position->setTypeY(QCPItemPosition::ptPlotCoords);
    name->position->setCoords(1, chain.referenceNs);
    const QFontMetrics metrics(name->font());
    const int width = std::max(metrics.horizontalAdvance(chain.reference),
                               metrics.horizontalAdvance(formatLatency(chain.referenceNs)));
    rect->setMargins(QMargins(0, 0, width + 2 * labelGap, 0));
}

void addReferenceTo(Chain &chain, const lineage::Lineage &lineage)
{
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        const gate::Trial *trial = lineage.trialOf(*state);
        const gate::Comparison *reference = isTimed(trial) ? trial->referenceComparison() : nullptr;
        if (!reference || reference->otherNs <= 0)
            continue;
        chain.reference = QString::fromStdString(reference->against);
        chain.referenceNs = reference->otherNs;
        return;
    }
}

} // namespace

Chain chainOf(const lineage::Lineage &lineage)
{
    Chain chain;
    for (std::size_t i = 0; i < lineage.states.size(); ++i) {
        const lineage::State &state = lineage.states[i];
        const gate::Trial *trial = lineage.trialOf(state);
        const lineage::Transition *step = lineage.transitionTo(state.id);
        ChainPoint point;
        point.id = QString::fromStdString(state.id);
        point.category = step ? QString::fromStdString(step->category) : QString();
        if (isTimed(trial)) {
            point.ns = trial->latencyNs.value;
            point.lowNs = trial->latencyNs.low;
            point.highNs = trial->latencyNs.high;
            const gate::Comparison *parent = trial->comparison("parent");
            if (parent && parent->speedup.value > 0)
                point.step = formatSpeedup(parent->speedup.value);
        }
        chain.points.push_back(std::move(point));

        std::vector<const lineage::Attempt *> tried;
        for (const lineage::Attempt &attempt : lineage.attempts) {
            if (attempt.parent == state.id)
                tried.push_back(&attempt);
        }
        for (std::size_t k = 0; k < tried.size(); ++k) {
            const gate::Trial *own = lineage.trialOf(*tried[k]);
            chain.attempts.push_back(
                {QString::fromStdString(tried[k]->id),
                 static_cast<double>(i) + static_cast<double>(k + 1) / static_cast<double>(tried.size() + 1),
                 isTimed(own) ? own->latencyNs.value : 0});
        }
    }
    addReferenceTo(chain, lineage);
    return chain;
}

void drawChain(QCustomPlot &plot, const Chain &chain)
{
    plot.clearPlottables();
    plot.clearItems();
    stylePlot(&plot, plot.palette());
    plot.setAccessibleName(chainText("Latency along the chain"));
    const QCPRange range = latencyRange(chain);
    plot.yAxis->setScaleType(QCPAxis::stLogarithmic);
    plot.yAxis->setTicker(QSharedPointer<QCPAxisTicker>(new LatencyTicker));
    plot.yAxis->setLabel(chainText("Latency, logarithmic"));
    plot.yAxis->setRange(range);
    const double last = std::max(static_cast<double>(chain.points.size()) - 1, 0.0);
    const bool isTriedFromLast =
        std::any_of(chain.attempts.begin(), chain.attempts.end(),
                    [last](const ChainAttempt &tried) { return tried.place > last; });
    plot.xAxis->setRange(-0.5, last + (isTriedFromLast ? 1.0 : 0.5));
    plot.xAxis->grid()->setVisible(false);
    addStates(plot, chain);
    const double bottom = range.lower * std::pow(range.upper / range.lower, 0.08);
    addAttempts(plot, chain, bottom);
    addReference(plot, chain);
    plot.replot(QCustomPlot::rpQueuedReplot);
}

} // namespace klineage::ui
