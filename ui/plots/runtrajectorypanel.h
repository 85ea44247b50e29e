// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/plots/runtrace.h"

#include <QWidget>

class QCPItemLine;
class QCPItemRect;
class QCPItemText;
class QCustomPlot;

namespace klineage::ui {

class FigureStack;
class RunStore;

/// Running-best speedup against dollars of the run that is looked at, and of the runs beside it. A glyph a step: ● valid, ◇ audited,
/// × wrapper, △ failed. Hovering names the step, clicking selects it. T shows the same as a table.
class RunTrajectoryPanel : public QWidget
{
    Q_OBJECT

public:
    explicit RunTrajectoryPanel(RunStore *store, QWidget *parent = nullptr);

    [[nodiscard]] const std::vector<RunTrace> &traces() const { return m_traces; }
    [[nodiscard]] QCustomPlot *plot() const { return m_plot; }
    /// Where a step stands in the plot's coordinates.
    [[nodiscard]] QPointF place(const RunTracePoint &point) const;

protected:
    void changeEvent(QEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    struct Hit {
        const RunTrace *trace = nullptr;
        const RunTracePoint *point = nullptr;
    };
    void refresh();
    void draw();
    void drawTrace(const RunTrace &trace, std::size_t series);
    void drawGuides();
    void showLegend();
    void showCaption(const Hit &hit);
    [[nodiscard]] Hit hitAt(const QPoint &position) const;

    RunStore *m_store;
    std::vector<RunTrace> m_traces;
    bool m_costs = false; ///< some step cost something: the axis is dollars, else steps
    FigureStack *m_stack = nullptr;
    QCustomPlot *m_plot;
    QCPItemLine *m_unity;
    QCPItemText *m_unityText;
    QCPItemLine *m_budget;
    QCPItemText *m_budgetText;
    QCPItemRect *m_load;
    QCPItemText *m_loadText;
    QCPItemText *m_caption;
};

} // namespace klineage::ui
