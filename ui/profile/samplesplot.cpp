// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/samplesplot.h"

#include "ui/plots/plotstyle.h"
#include "ui/style/format.h"

#include <QEvent>
#include <QVBoxLayout>

#include <algorithm>
#include <vector>

#include <qcustomplot.h>

namespace klineage::ui {

SamplesPlot::SamplesPlot(QWidget *parent)
    : QWidget(parent)
    , m_plot(new QCustomPlot)
{
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_plot);
    m_plot->setAccessibleName(tr("Raw samples, round by round"));
    m_plot->xAxis->setLabel(tr("Round"));
    m_plot->yAxis->setLabel(tr("Latency of one run, µs"));
    m_plot->legend->setVisible(true);
    // Beside the data, so that it hides none.
    m_plot->plotLayout()->addElement(0, 1, m_plot->legend);
    m_plot->plotLayout()->setColumnStretchFactor(1, 0.001);
    m_plot->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    m_plot->setFocusPolicy(Qt::StrongFocus);
    setFocusProxy(m_plot);
    applyPalette();
}

void SamplesPlot::setTrial(const gate::Trial *trial)
{
    m_plot->clearGraphs();
    QStringList words;
    if (trial) {
        std::size_t series = 0;
        for (const gate::Samples &samples : trial->samples) {
            QVector<double> rounds;
            QVector<double> latencies;
            for (std::size_t i = 0; i < samples.ns.size(); ++i) {
                rounds.append(static_cast<double>(i + 1));
                latencies.append(samples.ns[i] / 1e3);
            }
            words << inWords(samples);
            QCPGraph *graph = m_plot->addGraph();
            graph->setName(QString::fromStdString(samples.subject));
            graph->setData(rounds, latencies, true);
            stylePoints(graph, series++);
        }
        m_plot->rescaleAxes();
        m_plot->xAxis->scaleRange(1.04);
        m_plot->yAxis->scaleRange(1.2);
    }
    m_plot->setAccessibleDescription(words.join(QStringLiteral("; ")));
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

/// "candidate: median 172 µs of 31 rounds, from 171 µs to 174 µs"
QString SamplesPlot::inWords(const gate::Samples &samples)
{
    std::vector<double> ns = samples.ns;
    if (ns.empty())
        return {};
    std::sort(ns.begin(), ns.end());
    return tr("%1: median %2 of %3 rounds, from %4 to %5")
        .arg(QString::fromStdString(samples.subject), formatLatency(ns[ns.size() / 2]))
        .arg(ns.size())
        .arg(formatLatency(ns.front()), formatLatency(ns.back()));
}

void SamplesPlot::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        applyPalette();
}

void SamplesPlot::applyPalette()
{
    stylePlot(m_plot, palette());
    for (int i = 0; i < m_plot->graphCount(); ++i)
        stylePoints(m_plot->graph(i), static_cast<std::size_t>(i));
    m_plot->replot(QCustomPlot::rpQueuedReplot);
}

} // namespace klineage::ui
