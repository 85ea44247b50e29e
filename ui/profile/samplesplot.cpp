// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/samplesplot.h"

#include "ui/plots/plotstyle.h"
#include "ui/plots/table/figurestack.h"
#include "ui/plots/table/plottableview.h"
#include "ui/style/format.h"

#include <QAction>
#include <QEvent>

#include <algorithm>
#include <vector>

#include <qcustomplot.h>

namespace klineage::ui {

SamplesPlot::SamplesPlot(QWidget *parent)
    : QWidget(parent)
    , m_plot(new QCustomPlot)
{
    m_plot->setAccessibleName(tr("Raw samples, round by round"));
    m_stack = new FigureStack(this, m_plot, QStringLiteral("samples"),
                              {tr("Fit the samples"), tr("The samples as a table, and back")});
    connect(m_stack->fitAction(), &QAction::triggered, this, &SamplesPlot::fit);
    m_stack->table()->setMaker([this] { return samplesTable(m_samples); });
    m_plot->xAxis->setLabel(tr("Round"));
    m_plot->yAxis->setLabel(tr("Latency of one run, µs"));
    m_plot->legend->setVisible(true);
    // Beside the data, so that it hides none.
    m_plot->plotLayout()->addElement(0, 1, m_plot->legend);
    m_plot->plotLayout()->setColumnStretchFactor(1, 0.001);
    applyPalette();
}

void SamplesPlot::setTrial(const gate::Trial *trial)
{
    m_plot->clearGraphs();
    m_samples = trial ? trial->samples : std::vector<gate::Samples>();
    m_stack->table()->outdate();
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
    }
    m_plot->setAccessibleDescription(words.join(QStringLiteral("; ")));
    fit();
}

void SamplesPlot::fit()
{
    if (m_plot->graphCount() > 0) {
        m_plot->rescaleAxes();
        m_plot->xAxis->scaleRange(1.04);
        m_plot->yAxis->scaleRange(1.2);
    }
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

PlotTable samplesTable(const std::vector<gate::Samples> &samples)
{
    PlotTable table{{{SamplesPlot::tr("Round"), QStringLiteral("round")}}, {}};
    std::size_t rounds = 0;
    double least = 0;
    for (const gate::Samples &subject : samples) {
        rounds = std::max(rounds, subject.ns.size());
        for (const double ns : subject.ns)
            least = least == 0 ? ns : std::min(least, ns);
    }
    const LatencyUnit unit = latencyUnitFor(least);
    for (const gate::Samples &subject : samples) {
        const QString name = QString::fromStdString(subject.subject);
        table.columns.push_back(
            {QStringLiteral("%1, %2").arg(name, unit.symbol), QStringLiteral("%1_ns").arg(name)});
    }
    for (std::size_t round = 0; round < rounds; ++round) {
        const auto number = static_cast<double>(round + 1);
        PlotTable::Row row{{}, {PlotTable::Cell(number, QString::number(number))}};
        for (const gate::Samples &subject : samples)
            row.cells.push_back(round < subject.ns.size() ? PlotTable::Cell(
                                    subject.ns[round], formatInUnit(subject.ns[round], unit))
                                                          : PlotTable::Cell());
        table.rows.push_back(std::move(row));
    }
    return table;
}

} // namespace klineage::ui
