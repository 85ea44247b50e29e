// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

namespace klineage::ui {

/// Holds a panel that nobody sees yet, or has the place of one that is not made yet. Until reveal() the panel is not shown, so nothing in it is
/// styled, measured or laid out: that of panels behind a tab or another page costs more than all that the first paint of a window needs.
class LatePanel : public QWidget
{
    Q_OBJECT

public:
    explicit LatePanel(const QMargins &margins = {}, QWidget *parent = nullptr);

    /// Once, before reveal(). The panel becomes a child.
    void setPanel(QWidget *panel);
    [[nodiscard]] QWidget *panel() const { return m_panel; }
    void reveal();
    [[nodiscard]] bool isRevealed() const { return m_isRevealed; }

private:
    QWidget *m_panel = nullptr;
    bool m_isRevealed = false;
};

} // namespace klineage::ui
