// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/latepanel.h"

#include <QVBoxLayout>

#include <utility>

namespace klineage::ui {

LatePanel::LatePanel(QWidget *panel, const QMargins &margins, QWidget *parent)
    : QWidget(parent)
    , m_panel(panel)
{
    m_panel->hide(); // before it is in the layout, which shows its widgets
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(margins);
    layout->addWidget(m_panel);
}

void LatePanel::reveal()
{
    if (!std::exchange(m_isRevealed, true))
        m_panel->show();
}

} // namespace klineage::ui
