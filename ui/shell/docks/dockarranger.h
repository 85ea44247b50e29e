// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/shell/docks/layouts.h"

#include <QByteArray>
#include <QMap>
#include <QObject>

class QMainWindow;

namespace klineage::ui {

class DockPanel;

/// Arranges a window's docks by named layouts. What the user changes in a layout is kept with it, until reset.
class DockArranger : public QObject
{
    Q_OBJECT

public:
    DockArranger(QMainWindow *window, std::vector<DockPanel *> docks);

    [[nodiscard]] int current() const { return m_current; }
    /// Keeps the present layout as it is and shows another one, as it was left.
    void apply(int layout);
    /// As apply(), without keeping the present layout: after setStates().
    void restart(int layout);
    /// The present layout as it came.
    void reset();

    /// Leaves only the dock of a panel, or none, until unzoom(); another layout ends it too.
    void zoom(const QWidget *panel);
    void unzoom();
    [[nodiscard]] bool isZoomed() const { return !m_unzoomed.isEmpty(); }

    /// What was changed, by layout id, the present one included.
    [[nodiscard]] QMap<QString, QByteArray> states();
    /// Takes the states of an earlier session; those that do not fit are dropped when their layout is shown.
    void setStates(const QMap<QString, QByteArray> &states) { m_states = states; }
    [[nodiscard]] bool lastStateWasDamaged() const { return m_lastStateWasDamaged; }

    /// Panels of docks that are in front now, before their window is shown; the next one of the others, false after the last.
    void revealFront();
    bool revealNext();

    /// Sizes are only taken by a window that has its own.
    void windowShown();

signals:
    /// What is shown has been kept; nothing has been moved for the other layout yet. What changes the size of panels comes here, so that
    /// they are laid out once.
    void applying(const klineage::ui::WindowLayout &layout);
    void applied(const klineage::ui::WindowLayout &layout);

private:
    void build(const WindowLayout &layout);
    void placeArea(Qt::DockWidgetArea area, const std::vector<DockStack> &stacks,
                   Qt::Orientation orientation);
    void resize(const WindowLayout &layout);
    void updateTitles();
    void placeUnknown(const QByteArray &state, const WindowLayout &layout);
    [[nodiscard]] DockPanel *dock(const QString &id) const;

    QMainWindow *m_window;
    std::vector<DockPanel *> m_docks;
    QMap<QString, QByteArray> m_states;
    QByteArray m_unzoomed; ///< the arrangement that unzoom() brings back
    int m_current = -1;
    bool m_lastStateWasDamaged = false;
    bool m_titlesPending = false;
};

} // namespace klineage::ui
