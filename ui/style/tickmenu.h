// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMenu>

namespace klineage::ui {

/// A menu of which several entries are ticked, one after the other: it stays open while they are, by keys and by the mouse. Entries that are
/// not checkable close it, as Esc and a click elsewhere do.
class TickMenu : public QMenu
{
    Q_OBJECT

public:
    using QMenu::QMenu;

protected:
    void mousePressEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;

private:
    bool m_isPressed = false; ///< in here: the release of the click that opened the menu ticks nothing
};

} // namespace klineage::ui
