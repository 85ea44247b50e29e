// SPDX-License-Identifier: GPL-3.0-or-later
// Frames of plots as the window styles them: a step line of a million points and a scatter of 100,000, while they are dragged and zoomed.
#include "bench.h"
#include "uirows.h"

#include "ui/plots/manypoints.h"
#include "ui/plots/plotstyle.h"
#include "ui/style/theme.h"

#include <QApplication>

#include <qcustomplot.h>

#include <random>

namespace klineage::bench {

namespace {

constexpr double goalMs = 16;
constexpr int frames = 60;

/// Running best of a search: it rises ever more rarely, and the samples below it are noise.
struct Series {
    QVector<double> x;
    QVector<double> best;
    QVector<double> tried;
};

Series makeSeries(int points)
{
    std::mt19937 random(7);
    std::uniform_real_distribution<double> share(0, 1);
    Series series;
    double best = 1;
    for (int i = 0; i < points; ++i) {
        const double tried = best * (0.3 + 0.75 * share(random));
        best = std::max(best, tried);
        best = std::min(best, 1 + 9.0 * i / points + 0.2 * share(random));
        series.x.append(i);
        series.best.append(series.best.isEmpty() ? best : std::max(best, series.best.back()));
        series.tried.append(tried);
    }
    return series;
}

std::vector<double> framesOf(QCustomPlot &plot)
{
    const QCPRange whole = plot.xAxis->range();
    std::vector<double> samples;
    for (int i = 0; i < frames; ++i) {
        // The whole, then closer and dragged, and back.
        const double part = i % 3 == 0 ? 1 : i % 3 == 1 ? 0.3 : 0.05;
        const double from = whole.lower + whole.size() * (1 - part) * (i % 10) / 10.0;
        plot.xAxis->setRange(from, from + whole.size() * part);
        samples.push_back(millisecondsOf([&] { plot.replot(QCustomPlot::rpImmediateRefresh); }));
    }
    return samples;
}

} // namespace

void plotFrames(Reporter &reporter)
{
    QCustomPlot plot;
    plot.resize(1400, 420);
    ui::stylePlot(&plot, QApplication::palette());
    plot.show();
    QApplication::processEvents();
    const Series many = makeSeries(1'000'000);
    QCPGraph *line = plot.addGraph();
    ui::styleSteps(line, 0);
    line->setData(many.x, many.best, true);
    plot.rescaleAxes();
    reporter.samplesAtMost(QStringLiteral("plot.steps_1m"), framesOf(plot), QStringLiteral("ms"), goalMs,
                           QStringLiteral("a frame of 1400 x 420 of a step line of 1,000,000 points"));
    plot.clearPlottables();
    const Series fewer = makeSeries(100'000);
    auto *points = new ui::ManyPoints(plot.xAxis, plot.yAxis);
    ui::stylePoints(points, 0);
    points->setData(fewer.x, fewer.tried, true);
    plot.rescaleAxes();
    reporter.samplesAtMost(QStringLiteral("plot.scatter_100k"), framesOf(plot), QStringLiteral("ms"), goalMs,
                           QStringLiteral("a frame of 1400 x 420 of 100,000 points"));
}

namespace {

const Group group("plots", "frames of plots with many points", &plotFrames, true);

} // namespace

} // namespace klineage::bench
