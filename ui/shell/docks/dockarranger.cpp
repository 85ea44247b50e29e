// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/docks/dockarranger.h"

#include "ui/shell/docks/dockpanel.h"

#include <QApplication>
#include <QDataStream>
#include <QLayout>
#include <QMainWindow>
#include <QPointer>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int stateVersion = 1;
constexpr double designWidth = 1600;
constexpr double designHeight = 1000;
constexpr double leastBottom = 200;
constexpr double mostShareOfBottom = 0.4;

/// Where the first layout has a dock.
Qt::DockWidgetArea homeArea(const QString &id)
{
    const auto holds = [&id](const std::vector<DockStack> &stacks) {
        return std::any_of(stacks.begin(), stacks.end(),
                           [&id](const DockStack &stack) { return stack.docks.contains(id); });
    };
    const WindowLayout &first = windowLayouts().front();
    return holds(first.left)    ? Qt::LeftDockWidgetArea
           : holds(first.right) ? Qt::RightDockWidgetArea
                                : Qt::BottomDockWidgetArea;
}

/// Docks are hidden while they are arranged, which takes the focus away.
class FocusKeeper
{
public:
    void giveBack() const
    {
        if (m_focused && m_focused->isVisible())
            m_focused->setFocus(Qt::OtherFocusReason);
    }

private:
    QPointer<QWidget> m_focused = QApplication::focusWidget();
};

} // namespace

DockArranger::DockArranger(QMainWindow *window, std::vector<DockPanel *> docks)
    : QObject(window)
    , m_window(window)
    , m_docks(std::move(docks))
{
    m_window->setDockNestingEnabled(true);
    m_window->setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    m_window->setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    m_window->setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    m_window->setDocumentMode(true);
    for (DockPanel *dock : m_docks) {
        const auto later = [this] {
            if (m_titlesPending)
                return;
            m_titlesPending = true;
            QMetaObject::invokeMethod(this, &DockArranger::updateTitles, Qt::QueuedConnection);
        };
        connect(dock, &QDockWidget::visibilityChanged, this, later);
        connect(dock, &QDockWidget::dockLocationChanged, this, later);
        connect(dock, &QDockWidget::topLevelChanged, this, later);
    }
}

DockPanel *DockArranger::dock(const QString &id) const
{
    for (DockPanel *dock : m_docks) {
        if (dock->objectName() == id)
            return dock;
    }
    return nullptr;
}

void DockArranger::apply(int layout)
{
    if (layout < 0 || layout >= static_cast<int>(windowLayouts().size()) || layout == m_current)
        return;
    const FocusKeeper keeper;
    unzoom();
    if (m_current >= 0)
        m_states[windowLayouts()[static_cast<std::size_t>(m_current)].id] = m_window->saveState(stateVersion);
    m_current = layout;
    const WindowLayout &wanted = windowLayouts()[static_cast<std::size_t>(layout)];
    m_lastStateWasDamaged = false;
    emit applying(wanted);
    if (const QByteArray state = m_states.value(wanted.id); !state.isEmpty()) {
        if (m_window->restoreState(state, stateVersion)) {
            placeUnknown(state, wanted);
            updateTitles();
            keeper.giveBack();
            emit applied(wanted);
            return;
        }
        m_lastStateWasDamaged = true;
        m_states.remove(wanted.id);
    }
    build(wanted);
    keeper.giveBack();
    emit applied(wanted);
}

/// Docks that a state does not know, because it was saved before there was such a dock: a tab behind the front of their stack, as the
/// layout has it, or closed.
void DockArranger::placeUnknown(const QByteArray &state, const WindowLayout &layout)
{
    std::vector<DockStack> stacks = layout.left;
    stacks.insert(stacks.end(), layout.right.begin(), layout.right.end());
    stacks.insert(stacks.end(), layout.bottom.begin(), layout.bottom.end());
    for (DockPanel *unknown : m_docks) {
        QByteArray name; // as saveState() writes it
        QDataStream stream(&name, QIODevice::WriteOnly);
        stream << unknown->objectName();
        if (state.contains(name))
            continue;
        m_window->removeDockWidget(unknown);
        const auto stack = std::find_if(stacks.begin(), stacks.end(), [unknown](const DockStack &one) {
            return one.docks.contains(unknown->objectName());
        });
        DockPanel *front = stack == stacks.end() ? nullptr : dock(stack->docks.first());
        const bool fits = front && front != unknown && !front->isFloating() && !front->isHidden();
        if (fits)
            m_window->tabifyDockWidget(front, unknown);
        else
            m_window->addDockWidget(homeArea(unknown->objectName()), unknown);
        unknown->setVisible(fits);
        if (fits)
            front->raise();
    }
}

void DockArranger::zoom(const QWidget *panel)
{
    if (isZoomed())
        return;
    m_unzoomed = m_window->saveState(stateVersion);
    for (DockPanel *dock : m_docks) {
        if (dock->panel() != panel && !dock->isFloating())
            dock->hide();
    }
}

void DockArranger::unzoom()
{
    if (isZoomed())
        m_window->restoreState(std::exchange(m_unzoomed, {}), stateVersion);
}

void DockArranger::restart(int layout)
{
    m_current = -1;
    apply(std::max(0, layout));
}

void DockArranger::reset()
{
    if (m_current < 0)
        return;
    m_unzoomed.clear();
    const WindowLayout &layout = windowLayouts()[static_cast<std::size_t>(m_current)];
    m_states.remove(layout.id);
    const FocusKeeper keeper;
    emit applying(layout);
    build(layout);
    keeper.giveBack();
    emit applied(layout);
}

void DockArranger::build(const WindowLayout &layout)
{
    for (DockPanel *dock : m_docks) {
        dock->setFloating(false);
        m_window->removeDockWidget(dock);
    }
    placeArea(Qt::LeftDockWidgetArea, layout.left, Qt::Vertical);
    placeArea(Qt::RightDockWidgetArea, layout.right, Qt::Vertical);
    placeArea(Qt::BottomDockWidgetArea, layout.bottom, Qt::Horizontal);
    // Docks that the layout leaves out have a place too, so that they can be opened.
    for (DockPanel *dock : m_docks) {
        if (m_window->dockWidgetArea(dock) == Qt::NoDockWidgetArea) {
            m_window->addDockWidget(homeArea(dock->objectName()), dock);
            dock->hide();
        }
    }
    updateTitles();
    resize(layout);
}

void DockArranger::placeArea(Qt::DockWidgetArea area, const std::vector<DockStack> &stacks,
                             Qt::Orientation orientation)
{
    // Fronts first: a dock that is split from one with tabs would become one more tab.
    DockPanel *before = nullptr;
    for (const DockStack &stack : stacks) {
        DockPanel *front = dock(stack.docks.value(0));
        if (!front)
            continue;
        if (before)
            m_window->splitDockWidget(before, front, orientation);
        else
            m_window->addDockWidget(area, front, orientation);
        front->show();
        before = front;
    }
    for (const DockStack &stack : stacks) {
        DockPanel *front = dock(stack.docks.value(0));
        DockPanel *last = front;
        for (const QString &id : stack.docks.mid(1)) {
            DockPanel *tab = dock(id);
            if (!front || !tab)
                continue;
            m_window->tabifyDockWidget(last, tab);
            tab->show();
            last = tab;
        }
        if (last != front)
            front->raise();
    }
}

/// The design's sizes, scaled to the window: narrow windows keep the proportions.
void DockArranger::resize(const WindowLayout &layout)
{
    const double across = std::min(1.4, m_window->width() / designWidth);
    const double down = std::min(1.5, m_window->height() / designHeight);
    const auto sizes = [this](const std::vector<DockStack> &stacks, int extent, Qt::Orientation orientation,
                              double length) {
        QList<QDockWidget *> docks;
        QList<int> extents;
        QList<int> lengths;
        int shares = 0;
        for (const DockStack &stack : stacks)
            shares += stack.share;
        for (const DockStack &stack : stacks) {
            if (DockPanel *front = dock(stack.docks.value(0))) {
                docks << front;
                extents << extent;
                lengths << static_cast<int>(length * stack.share / shares);
            }
        }
        if (docks.isEmpty())
            return;
        m_window->resizeDocks({docks.first()}, {extents.first()}, orientation);
        m_window->resizeDocks(docks, lengths, orientation == Qt::Horizontal ? Qt::Vertical : Qt::Horizontal);
    };
    sizes(layout.left, static_cast<int>(layout.leftWidth * across), Qt::Horizontal, m_window->height() - 80);
    sizes(layout.right, static_cast<int>(layout.rightWidth * across), Qt::Horizontal,
          m_window->height() - 80);
    // A plot needs a height of its own, up to some share of a low window.
    const double lowest = std::min(leastBottom, m_window->height() * mostShareOfBottom);
    sizes(layout.bottom, static_cast<int>(std::max(layout.bottomHeight * down, lowest)), Qt::Vertical,
          m_window->width() - (layout.leftWidth + layout.rightWidth) * across);
}

void DockArranger::revealFront()
{
    m_window->layout()->activate(); // says which tabs are in front
    for (DockPanel *dock : m_docks) {
        if (dock->isInFront())
            dock->reveal();
    }
}

bool DockArranger::revealNext()
{
    const auto next = std::find_if(m_docks.begin(), m_docks.end(),
                                   [](const DockPanel *dock) { return !dock->isRevealed(); });
    if (next != m_docks.end())
        (*next)->reveal();
    return next != m_docks.end();
}

void DockArranger::windowShown()
{
    if (m_current < 0)
        return;
    const WindowLayout &layout = windowLayouts()[static_cast<std::size_t>(m_current)];
    if (!m_states.contains(layout.id))
        resize(layout);
    updateTitles();
}

QMap<QString, QByteArray> DockArranger::states()
{
    if (m_current >= 0)
        m_states[windowLayouts()[static_cast<std::size_t>(m_current)].id] =
            isZoomed() ? m_unzoomed : m_window->saveState(stateVersion);
    return m_states;
}

void DockArranger::updateTitles()
{
    m_titlesPending = false;
    for (DockPanel *dock : m_docks) {
        bool tabbed = false;
        for (const QDockWidget *other : m_window->tabifiedDockWidgets(dock))
            tabbed = tabbed || !other->isHidden();
        dock->setTabbed(tabbed && !dock->isFloating());
    }
}

} // namespace klineage::ui
