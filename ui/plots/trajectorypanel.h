// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/plots/trajectory.h"

#include <QWidget>

class QCPGraph;
class QCPItemLine;
class QCPItemText;
class QCustomPlot;

namespace klineage::ui {

class FigureStack;
class Selection;
class WorkspaceModel;

/// Running-best speedup over the recorded trials of the selected lineage, with a glyph a trial: ● valid, △ failed.
/// Hovering a point lights up its row everywhere (Selection::hovered); clicking selects it. T shows the same as a table.
class TrajectoryPanel : public QWidget
{
    Q_OBJECT

public:
    TrajectoryPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);

    [[nodiscard]] const Trajectory &trajectory() const { return m_trajectory; }
    [[nodiscard]] QCustomPlot *plot() const { return m_plot; }
    /// Index of the point nearest to a position of the plot, -1 when none is within 12 px.
    [[nodiscard]] int pointAt(const QPoint &position) const;

protected:
    void changeEvent(QEvent *event) override;
    void leaveEvent(QEvent *event) override;

private:
    void refresh();
    void mark();
    void fitCaption();
    [[nodiscard]] QString inWords() const;
    void applyPalette();
    [[nodiscard]] int pointOfRow(const QString &row) const;

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    Trajectory m_trajectory;
    FigureStack *m_stack = nullptr;
    QCustomPlot *m_plot;
    QCPGraph *m_best;
    QCPGraph *m_valid;
    QCPGraph *m_unpaired;
    QCPGraph *m_failed;
    QCPGraph *m_current;
    QCPGraph *m_hovered;
    QCPItemLine *m_unity;
    QCPItemText *m_unityText;
    QCPItemText *m_caption;
    QStringList m_captionParts; ///< a line each where one line has no room for all
};

} // namespace klineage::ui
