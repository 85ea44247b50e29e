// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

namespace klineage::ui {

/// Holds a panel that nobody sees yet. Until reveal() it is not shown, so nothing in it is styled, measured or laid out: that of panels
/// behind a tab or another page costs more than all that the first paint of a window needs.
class LatePanel : public QWidget
{
    Q_OBJECT

public:
    /// The panel becomes a child.
    explicit LatePanel(QWidget *panel, const QMargins &margins = {}, QWidget *parent = nullptr);

    [[nodiscard]] QWidget *panel() const { return m_panel; }
    void reveal();
    [[nodiscard]] bool isRevealed() const { return m_isRevealed; }

private:
    QWidget *m_panel;
    bool m_isRevealed = false;
};

} // namespace klineage::ui
