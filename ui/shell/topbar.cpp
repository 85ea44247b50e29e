// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/topbar.h"

#include "ui/shell/docks/layouts.h"
#include "ui/style/fonts.h"
#include "ui/style/icons.h"
#include "ui/style/segmentedswitch.h"
#include "ui/style/theme.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QToolButton>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int keyGap = 8;
constexpr int usualGoTo = 250;
constexpr int leastGoTo = 110;    // the beginning of what it says
constexpr int mostWorkspace = 24; // average letters of a folder's name

/// Looks like a field, opens the go-to list: text at the left, its key at the right.
class GoToButton : public QPushButton
{
public:
    using QPushButton::QPushButton;
    void setKey(const QString &key)
    {
        m_key = key;
        setToolTip(QStringLiteral("%1 (%2)").arg(text(), key));
        update();
    }

protected:
    void paintEvent(QPaintEvent *) override
    {
        const Theme &theme = Theme::current();
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(hasFocus() ? theme.accent : underMouse() ? theme.faint : theme.border, 1));
        painter.setBrush(theme.panel);
        painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
        const QRect inner = rect().adjusted(10, 0, -10, 0);
        ui::icon(QStringLiteral("search"))
            .paint(&painter, QRect(inner.left(), inner.center().y() - 6, 13, 13), Qt::AlignCenter,
                   QIcon::Normal);
        painter.setPen(theme.dim);
        const QRect words = inner.adjusted(21, 0, 0, 0);
        painter.drawText(words, Qt::AlignVCenter | Qt::AlignLeft,
                         fontMetrics().elidedText(text(), Qt::ElideRight, words.width()));
        painter.setFont(captionFont());
        if (fontMetrics().horizontalAdvance(text()) + painter.fontMetrics().horizontalAdvance(m_key) + keyGap
            > words.width())
            return; // the tool tip has the key too
        painter.setPen(theme.faint);
        painter.drawText(inner, Qt::AlignVCenter | Qt::AlignRight, m_key);
    }

private:
    QString m_key;
};

} // namespace

TopBar::TopBar(QWidget *parent)
    : QWidget(parent)
    , m_name(new QLabel(QStringLiteral("KLineage")))
    , m_workspace(new QToolButton)
    , m_readOnly(new QToolButton)
    , m_workspaceMenu(new QMenu(this))
    , m_mainMenu(new QMenu(this))
    , m_goTo(new GoToButton(tr("Go to workload, state, card…")))
    , m_menuButton(new QToolButton)
{
    QStringList names;
    for (const WindowLayout &layout : windowLayouts())
        names << layout.name;
    m_layouts = new SegmentedSwitch(names);
    m_layouts->setAccessibleName(tr("Window layout"));
    connect(m_layouts, &SegmentedSwitch::chosen, this, &TopBar::layoutChosen);

    m_name->setFont(strongFont());
    m_workspace->setPopupMode(QToolButton::InstantPopup);
    m_workspace->setMenu(m_workspaceMenu);
    m_workspace->setFocusPolicy(Qt::TabFocus);
    m_workspace->setAccessibleName(tr("Workspace"));
    m_readOnly->setObjectName(QStringLiteral("readOnly"));
    m_readOnly->setText(tr("read-only: copy…"));
    m_readOnly->setToolTip(
        tr("What is edited, reviewed or run here cannot be kept: it is the installed example, or it may "
           "not be written to. Copy it to a folder of your own."));
    m_readOnly->setFocusPolicy(Qt::TabFocus);
    m_readOnly->hide();
    connect(m_readOnly, &QToolButton::clicked, this, &TopBar::copyRequested);
    m_goTo->setMinimumWidth(usualGoTo);
    m_goTo->setFixedHeight(27);
    m_goTo->setMaximumWidth(400);
    m_goTo->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    connect(m_goTo, &QPushButton::clicked, this, &TopBar::goToRequested);
    m_menuButton->setIcon(icon(QStringLiteral("menu")));
    m_menuButton->setPopupMode(QToolButton::InstantPopup);
    m_menuButton->setMenu(m_mainMenu);
    m_menuButton->setFocusPolicy(Qt::TabFocus);
    m_menuButton->setAccessibleName(tr("Menu"));
    m_menuButton->setToolTip(tr("Menu (F10)"));

    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(14, 7, 8, 7);
    row->setSpacing(8);
    row->addWidget(m_name);
    row->addWidget(m_workspace);
    row->addWidget(m_readOnly);
    row->addSpacing(18);
    row->addWidget(m_layouts);
    row->addStretch(1);
    row->addWidget(m_goTo, 1);
    row->addWidget(m_menuButton);
    setWorkspaceName({}, {});
}

void TopBar::setWorkspaceName(const QString &name, const QString &path)
{
    m_workspaceName = name.isEmpty() ? tr("no workspace") : name;
    m_workspace->setToolTip(path);
    makeRoom();
}

/// The menu stays in the window: the field gives way first, then the program's name, which the window's title has too.
void TopBar::makeRoom()
{
    m_workspace->setText(
        m_workspace->fontMetrics().elidedText(m_workspaceName, Qt::ElideMiddle,
                                              m_workspace->fontMetrics().averageCharWidth() * mostWorkspace)
        + QStringLiteral(" ▾"));
    m_goTo->setMinimumWidth(0);
    m_name->show();
    layout()->invalidate();
    const int others = layout()->minimumSize().width();
    const int room = width() - others;
    m_name->setVisible(room >= leastGoTo);
    m_goTo->setMinimumWidth(std::clamp(room, leastGoTo, usualGoTo));
}

void TopBar::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    makeRoom();
}

void TopBar::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    // Once the parts have the new font too.
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        QMetaObject::invokeMethod(this, &TopBar::makeRoom, Qt::QueuedConnection);
}

void TopBar::setReadOnly(bool readOnly)
{
    m_readOnly->setVisible(readOnly);
    makeRoom();
}

void TopBar::setGoToKey(const QString &key)
{
    static_cast<GoToButton *>(m_goTo)->setKey(key);
}

void TopBar::openMainMenu()
{
    m_menuButton->showMenu();
}

} // namespace klineage::ui
