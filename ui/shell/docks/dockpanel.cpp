// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/docks/dockpanel.h"

#include "ui/shell/docks/docktitlebar.h"
#include "ui/shell/latepanel.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QPainter>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int widestMinimum = 216;

/// Paints the frame around a panel: below a title bar, or below a tab.
class PanelFrame : public LatePanel
{
public:
    explicit PanelFrame(const DockPanel *dock)
        : LatePanel(QMargins(1, 0, 1, 1))
        , m_dock(dock)
    {}

    /// What a hidden tab would like must not widen the dock in front of it: panels make do with less.
    QSize minimumSizeHint() const override
    {
        const QSize wanted = QWidget::minimumSizeHint();
        return {std::min(wanted.width(), widestMinimum), wanted.height()};
    }

protected:
    void paintEvent(QPaintEvent *) override
    {
        const Theme &theme = Theme::current();
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(m_dock->hasFocusWithin() ? theme.accent : theme.border, 1));
        painter.setBrush(theme.panel);
        painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, -6, -0.5, -0.5), 3, 3);
    }

private:
    const DockPanel *m_dock;
};

/// A title bar that takes no room.
class NoTitleBar : public QWidget
{
public:
    using QWidget::QWidget;
    QSize sizeHint() const override { return {0, 0}; }
    QSize minimumSizeHint() const override { return {0, 0}; }
};

} // namespace

DockPanel::DockPanel(const QString &id, const QString &title, QWidget *parent)
    : QDockWidget(title, parent)
    , m_frame(new PanelFrame(this))
    , m_title(new DockTitleBar(title, this))
    , m_noTitle(new NoTitleBar(this))
{
    setObjectName(id);
    m_noTitle->hide();
    setTitleBarWidget(m_title);
    setWidget(m_frame);
    connect(this, &QDockWidget::visibilityChanged, this, [this](bool visible) {
        if (visible && isInFront())
            reveal();
    });
    connect(qApp, &QApplication::focusChanged, this, [this](const QWidget *, const QWidget *now) {
        const bool within = now && isAncestorOf(now);
        if (within == m_hasFocusWithin)
            return;
        m_hasFocusWithin = within;
        m_title->setLit(within);
        m_frame->update();
    });
}

void DockPanel::setPanel(QWidget *panel)
{
    panel->setAutoFillBackground(true);
    panel->setBackgroundRole(QPalette::Base);
    if (panel->accessibleName().isEmpty())
        panel->setAccessibleName(windowTitle());
    m_title->setPanel(panel);
    m_frame->setPanel(panel);
}

QWidget *DockPanel::panel() const
{
    return m_frame->panel();
}

void DockPanel::reveal()
{
    m_frame->reveal();
}

bool DockPanel::isRevealed() const
{
    return m_frame->isRevealed();
}

/// A main window puts what is behind a tab to where nothing is seen.
bool DockPanel::isInFront() const
{
    return !isHidden() && (isFloating() || (geometry().right() >= 0 && geometry().bottom() >= 0));
}

void DockPanel::setTabbed(bool tabbed)
{
    QWidget *wanted = tabbed ? m_noTitle : static_cast<QWidget *>(m_title);
    if (titleBarWidget() == wanted)
        return;
    QWidget *other = tabbed ? static_cast<QWidget *>(m_title) : m_noTitle;
    setTitleBarWidget(wanted);
    wanted->show();
    other->hide();
}

} // namespace klineage::ui
