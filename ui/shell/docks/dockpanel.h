// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDockWidget>

namespace klineage::ui {

class DockTitleBar;
class LatePanel;

/// A dock with a panel in a hairline frame. While it is one of several tabs the tab stands for its title.
class DockPanel : public QDockWidget
{
    Q_OBJECT

public:
    /// The object name of the dock is the id: layouts are saved under it.
    DockPanel(const QString &id, const QString &title, QWidget *parent);

    /// Once; until then the frame is empty. The panel becomes a child.
    void setPanel(QWidget *panel);
    [[nodiscard]] QWidget *panel() const;
    /// The panel comes when the dock is first in front of its tabs, or when this asks for it.
    void reveal();
    [[nodiscard]] bool isRevealed() const;
    /// Shown, and not behind a tab. Right once its window has been laid out, be it shown or not.
    [[nodiscard]] bool isInFront() const;
    void setTabbed(bool tabbed);
    /// Its frame is painted in the accent colour then.
    [[nodiscard]] bool hasFocusWithin() const { return m_hasFocusWithin; }

private:
    LatePanel *m_frame;
    DockTitleBar *m_title;
    QWidget *m_noTitle;
    bool m_hasFocusWithin = false;
};

} // namespace klineage::ui
