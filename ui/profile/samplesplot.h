// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"
#include "ui/plots/table/plottable.h"

#include <QWidget>

class QCustomPlot;

namespace klineage::ui {

class FigureStack;

/// The raw latencies of a trial, round by round, one series a subject (candidate, parent, reference). Never smoothed. F fits
/// the plot, T shows the same as a table.
class SamplesPlot : public QWidget
{
    Q_OBJECT

public:
    explicit SamplesPlot(QWidget *parent = nullptr);

    void setTrial(const gate::Trial *trial); ///< null clears

protected:
    void changeEvent(QEvent *event) override;

private:
    void applyPalette();
    void fit();
    [[nodiscard]] static QString inWords(const gate::Samples &samples);

    std::vector<gate::Samples> m_samples;
    FigureStack *m_stack = nullptr;
    QCustomPlot *m_plot;
};

/// A row a round, a column a subject.
[[nodiscard]] PlotTable samplesTable(const std::vector<gate::Samples> &samples);

} // namespace klineage::ui
