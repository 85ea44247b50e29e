// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <QWidget>

class QCustomPlot;

namespace klineage::ui {

/// The raw latencies of a trial, round by round, one series a subject (candidate, parent, reference). Never smoothed.
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
    [[nodiscard]] static QString inWords(const gate::Samples &samples);

    QCustomPlot *m_plot;
};

} // namespace klineage::ui
