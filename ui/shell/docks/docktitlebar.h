// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QDockWidget;
class QLabel;
class QHBoxLayout;
class QMenu;

namespace klineage::ui {

/// The compact title bar of a dock: title, the panel's own subtitle (its window title), and at the right what the panel puts there.
/// Double click floats the dock, the context menu floats or closes it.
class DockTitleBar : public QWidget
{
    Q_OBJECT

public:
    DockTitleBar(const QString &title, QDockWidget *dock);

    /// Follows the panel's window title, or takes its child named "titleBarSubtitle" for that; takes its child named "titleBarCorner".
    void setPanel(QWidget *panel);
    void setLit(bool lit); ///< its panel has the focus
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

    static constexpr int barHeight = 29;

protected:
    void paintEvent(QPaintEvent *event) override;
    void contextMenuEvent(QContextMenuEvent *event) override;

private:
    QDockWidget *m_dock;
    QLabel *m_title;
    QLabel *m_subtitle;
    QHBoxLayout *m_row;
    bool m_isLit = false;
};

} // namespace klineage::ui
