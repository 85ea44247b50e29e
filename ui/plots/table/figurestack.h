// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStackedWidget>

class QAction;
class QCustomPlot;
class QLabel;

namespace klineage::ui {

class PlotTableView;

/// A plot that can be dragged and zoomed, the table behind it, and the message that both give way to: one at a time. Two commands whose keys
/// act inside: F fits the plot, T shows the same numbers as a table and the plot again.
class FigureStack : public QStackedWidget
{
    Q_OBJECT

public:
    struct Texts {
        QString fit;   ///< "Fit the trajectory"
        QString table; ///< "The trajectory as a table, and back"
    };
    /// Makes the plot's panel: lays the stack out in it. `id` is the beginning of the commands' names, as in "trajectory.fit",
    /// "trajectory.table".
    FigureStack(QWidget *panel, QCustomPlot *plot, const QString &id, const Texts &texts);

    [[nodiscard]] PlotTableView *table() const { return m_table; }
    [[nodiscard]] QAction *fitAction() const { return m_fit; }
    [[nodiscard]] QAction *tableAction() const { return m_tableAction; }

    /// The plot or its table, whichever was chosen.
    void showFigure();
    void showMessage(const QString &text);

private:
    void turnTo(QWidget *page);

    QCustomPlot *m_plot;
    PlotTableView *m_table;
    QLabel *m_message;
    QAction *m_fit;
    QAction *m_tableAction;
};

} // namespace klineage::ui
