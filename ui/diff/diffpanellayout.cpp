// SPDX-License-Identifier: GPL-3.0-or-later
// The widgets and commands of DiffPanel.
#include "ui/diff/diffpanel.h"

#include "ui/diff/commentbar.h"
#include "ui/diff/sideheader.h"
#include "ui/diff/view/diffview.h"
#include "ui/diff/view/overviewstrip.h"
#include "ui/highlight/findbar.h"
#include "ui/style/icons.h"
#include "ui/style/keyscope.h"

#include <QAction>
#include <QHBoxLayout>
#include <QLabel>
#include <QTabBar>
#include <QToolButton>
#include <QVBoxLayout>

#include <utility>

namespace klineage::ui {

namespace {

constexpr int barSpacing = 24; // between the parts of the bar, all together

} // namespace

QAction *DiffPanel::command(const QString &name, const QString &text, const QKeySequence &key,
                            void (DiffPanel::*slot)())
{
    auto *action = new QAction(text, this);
    action->setObjectName(name);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    action->setToolTip(QStringLiteral("%1 (%2)").arg(text, key.toString(QKeySequence::NativeText)));
    connect(action, &QAction::triggered, this, slot);
    addAction(action);
    m_commands << action;
    return action;
}

QAction *DiffPanel::toggle(const QString &name, const QString &text, const QKeySequence &key, bool checked,
                           const std::function<void(bool)> &changed)
{
    auto *action = new QAction(text, this);
    action->setObjectName(name);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    action->setToolTip(QStringLiteral("%1 (%2)").arg(text, key.toString(QKeySequence::NativeText)));
    action->setCheckable(true);
    action->setChecked(checked);
    connect(action, &QAction::toggled, this, changed);
    addAction(action);
    m_commands << action;
    auto *button = new QToolButton;
    button->setDefaultAction(action);
    button->setAutoRaise(true);
    button->setFocusPolicy(Qt::TabFocus);
    m_toggles->layout()->addWidget(button);
    m_viewMenu->addAction(action);
    return action;
}

/// The tabs stay whole: where all of it does not fit, the switches become a menu, then the count of changes goes.
void DiffPanel::makeRoom()
{
    const QLayout *bar = m_toggles->layout();
    // The count's longest form, so that stepping through the changes moves nothing.
    const int count = m_hunks->fontMetrics().horizontalAdvance(tr("Change %1 of %2").arg(88).arg(88));
    int rest = m_tabs->sizeHint().width() + count + barSpacing;
    for (const QToolButton *button : std::as_const(m_buttons))
        rest += button->sizeHint().width();
    const bool fits = rest + bar->sizeHint().width() <= width();
    m_toggles->setVisible(fits);
    m_viewMenu->setVisible(!fits);
    m_hunks->setVisible(fits || rest + m_viewMenu->sizeHint().width() <= width());
}

void DiffPanel::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    makeRoom();
}

/// That of the narrow form.
QSize DiffPanel::minimumSizeHint() const
{
    int width = m_tabs->sizeHint().width() + m_viewMenu->sizeHint().width() + barSpacing;
    for (const QToolButton *button : std::as_const(m_buttons))
        width += button->sizeHint().width();
    return {width, QWidget::minimumSizeHint().height()};
}

void DiffPanel::makeCommands()
{
    auto *bar = new QHBoxLayout(m_toggles);
    bar->setContentsMargins(0, 0, 0, 0);
    bar->setSpacing(2);
    m_toggles->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);
    m_viewMenu->setText(tr("View ▾"));
    m_viewMenu->setToolTip(tr("Unified, folding, moved blocks, whitespace, stall samples"));
    m_viewMenu->setPopupMode(QToolButton::InstantPopup);
    m_viewMenu->setAutoRaise(true);
    m_viewMenu->setFocusPolicy(Qt::TabFocus);
    QAction *previous = command(QStringLiteral("diff.previousHunk"), tr("Previous change"),
                                QKeySequence(Qt::SHIFT | Qt::Key_F8), &DiffPanel::goToPreviousHunk);
    QAction *next = command(QStringLiteral("diff.nextHunk"), tr("Next change"), QKeySequence(Qt::Key_F8),
                            &DiffPanel::goToNextHunk);
    previous->setIcon(icon(QStringLiteral("previous")));
    next->setIcon(icon(QStringLiteral("next")));
    for (QAction *action : {previous, next}) {
        auto *button = new QToolButton(this);
        button->setDefaultAction(action);
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        m_buttons << button;
    }
    m_commands << m_find->commands();
    command(QStringLiteral("diff.goToLine"), tr("Go to line…"), QKeySequence(Qt::CTRL | Qt::Key_G),
            &DiffPanel::askForLine);
    toggle(QStringLiteral("diff.unified"), tr("Unified"), QKeySequence(Qt::Key_U), false,
           [this](bool on) { m_view->setUnified(on); });
    toggle(QStringLiteral("diff.fold"), tr("Fold"), QKeySequence(Qt::Key_Z), true,
           [this](bool on) { m_view->setFolding(on); });
    toggle(QStringLiteral("diff.wrap"), tr("Wrap"), QKeySequence(Qt::ALT | Qt::Key_Z), false,
           [this](bool on) { m_view->setWrapping(on); });
    toggle(QStringLiteral("diff.moves"), tr("Moves"), QKeySequence(Qt::Key_M), m_options.detectMoves,
           [this](bool on) {
               m_options.detectMoves = on;
               refresh();
           });
    toggle(QStringLiteral("diff.whitespace"), tr("Ignore whitespace"), QKeySequence(Qt::Key_W),
           m_options.ignoreWhitespace,
           [this](bool on) {
               m_options.ignoreWhitespace = on;
               refresh();
           })
        ->setIconText(tr("Ignore space"));
    m_heatAction = toggle(QStringLiteral("diff.heat"), tr("Stall samples"), QKeySequence(Qt::Key_S), false,
                          [this](bool) { showHeat(); });
    m_heatAction->setIconText(tr("Stalls"));
    QAction *mostMoved =
        command(QStringLiteral("diff.nextMoved"), tr("Change where most samples moved, next"),
                QKeySequence(Qt::Key_F7), &DiffPanel::goToNextMoved);
    QAction *lessMoved =
        command(QStringLiteral("diff.previousMoved"), tr("Change where most samples moved, previous"),
                QKeySequence(Qt::SHIFT | Qt::Key_F7), &DiffPanel::goToPreviousMoved);
    // The key that says something about a card says it here about the code.
    m_commentAction = command(QStringLiteral("diff.comment"), tr("Comment on the code…"),
                              QKeySequence(Qt::Key_C), &DiffPanel::comment);
    command(QStringLiteral("diff.nextComment"), tr("Next comment on the code"),
            QKeySequence(Qt::ALT | Qt::Key_C), &DiffPanel::goToNextComment);
    command(QStringLiteral("diff.previousComment"), tr("Previous comment on the code"),
            QKeySequence(Qt::ALT | Qt::SHIFT | Qt::Key_C), &DiffPanel::goToPreviousComment);
    // A step is walked through from wherever one chose it.
    for (QAction *walk : {previous, next, mostMoved, lessMoved})
        walk->setShortcutContext(Qt::WindowShortcut);
    for (QAction *action : std::as_const(m_commands)) {
        if (action->isCheckable())
            actInAllPanes(action);
    }
}

void DiffPanel::layOut()
{
    m_tabs->setUsesScrollButtons(false);
    m_tabs->setElideMode(Qt::ElideNone);
    m_tabs->addTab(tr("Source"));
    m_tabs->addTab(tr("Launch plan"));
    m_tabs->addTab(tr("Compiler log"));
    setBackgroundRole(QPalette::Base);
    setAutoFillBackground(true);
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->setAccessibleName(tr("What is compared"));
    m_hunks->setObjectName(QStringLiteral("diffHunks"));
    m_hunks->setForegroundRole(QPalette::PlaceholderText);
    m_busy->setForegroundRole(QPalette::PlaceholderText);
    m_busy->hide();

    auto *top = new QHBoxLayout;
    top->setContentsMargins(0, 0, 6, 0);
    top->setSpacing(2);
    top->addWidget(m_tabs);
    top->addStretch(1);
    top->addWidget(m_busy);
    top->addSpacing(8);
    top->addWidget(m_hunks);
    for (QToolButton *button : m_buttons)
        top->addWidget(button);
    top->addWidget(m_toggles);
    top->addWidget(m_viewMenu);

    auto *headers = new QHBoxLayout;
    headers->setContentsMargins(0, 0, 0, 0);
    headers->setSpacing(1);
    headers->addWidget(m_left, 1);
    headers->addWidget(m_right, 1);
    headers->addSpacing(OverviewStrip::stripWidth - 1);

    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(top);
    layout->addLayout(headers);
    layout->addWidget(m_find);
    layout->addWidget(m_view, 1);
    layout->addWidget(m_commentBar);
}

} // namespace klineage::ui
