// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/docks/docktitlebar.h"

#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QContextMenuEvent>
#include <QDockWidget>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPainterPath>

namespace klineage::ui {

DockTitleBar::DockTitleBar(const QString &title, QDockWidget *dock)
    : QWidget(dock)
    , m_dock(dock)
    , m_title(new QLabel(title))
    , m_subtitle(new QLabel)
    , m_row(new QHBoxLayout(this))
{
    m_title->setFont(strongFont());
    m_subtitle->setForegroundRole(QPalette::PlaceholderText);
    m_subtitle->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    for (QLabel *label : {m_title, m_subtitle})
        label->setAttribute(Qt::WA_TransparentForMouseEvents); // the dock drags by its title
    m_row->setContentsMargins(11, 1, 5, 0);
    m_row->setSpacing(9);
    m_row->addWidget(m_title);
    m_row->addWidget(m_subtitle, 1);
}

void DockTitleBar::setPanel(QWidget *panel)
{
    if (auto *link = panel->findChild<QWidget *>(QStringLiteral("titleBarSubtitle"))) {
        m_row->insertWidget(m_row->indexOf(m_subtitle), link); // which leaves the rest to the label
        link->setHidden(panel->windowTitle().isEmpty());
    } else {
        m_subtitle->setText(panel->windowTitle());
        connect(panel, &QWidget::windowTitleChanged, m_subtitle, &QLabel::setText);
    }
    if (auto *corner = panel->findChild<QWidget *>(QStringLiteral("titleBarCorner")))
        m_row->addWidget(corner);
}

void DockTitleBar::setLit(bool lit)
{
    m_isLit = lit;
    update();
}

QSize DockTitleBar::sizeHint() const
{
    return {minimumSizeHint().width(), barHeight};
}

QSize DockTitleBar::minimumSizeHint() const
{
    return {m_row->minimumSize().width(), barHeight};
}

void DockTitleBar::paintEvent(QPaintEvent *)
{
    const Theme &theme = Theme::current();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    // Round above, open below, where the panel goes on.
    const QRectF bar = QRectF(rect()).adjusted(0.5, 0.5, -0.5, 6);
    painter.setPen(QPen(m_isLit ? theme.accent : theme.border, 1));
    painter.setBrush(theme.header);
    painter.drawRoundedRect(bar, 4, 4);
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(QPen(theme.border, 1));
    painter.drawLine(0, height() - 1, width(), height() - 1);
}

void DockTitleBar::contextMenuEvent(QContextMenuEvent *event)
{
    QMenu menu(this);
    QAction *floating = menu.addAction(m_dock->isFloating() ? tr("Dock again") : tr("Float"));
    QAction *close = menu.addAction(tr("Close"));
    const QAction *chosen = menu.exec(event->globalPos());
    if (chosen == floating)
        m_dock->setFloating(!m_dock->isFloating());
    else if (chosen == close)
        m_dock->close();
}

} // namespace klineage::ui
