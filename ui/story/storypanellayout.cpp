// SPDX-License-Identifier: GPL-3.0-or-later
// The bar and the commands of StoryPanel.
#include "ui/story/storypanel.h"

#include "ui/runs/runstore.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/windows/comparewindow.h"
#include "ui/story/windows/presenter.h"
#include "ui/style/flowlayout.h"
#include "ui/style/keyscope.h"
#include "ui/style/segmentedswitch.h"
#include "ui/style/tickmenu.h"

#include <QAction>
#include <QComboBox>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

constexpr int narrowestViews = 120; // pixels; the names are whole where there is room

} // namespace

void StoryPanel::buildBar()
{
    m_views->addItems({tr("Waterfall"), tr("Graph"), tr("Lineages overlaid"), tr("Speedups (Fig. 3)"),
                       tr("Taken apart (Fig. 5)"), tr("Steps of a run (Fig. 6)"), tr("Roundtrip (Table 3)")});
    m_views->setAccessibleName(tr("What the story shows"));
    m_views->setProperty("notExported", true);
    m_views->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_views->setMinimumWidth(narrowestViews);
    m_source->setAccessibleName(tr("Of what the picture is"));
    m_source->setToolTips({tr("The lineage that is selected"),
                           tr("The run that is looked at; it grows while the run goes on")});
    m_scale->setAccessibleName(tr("What speedups are over"));
    m_scale->setToolTips({tr("Each over its own first state: medians, not paired"),
                          tr("Each over its own vendor reference, paired")});
    m_lineages->setText(tr("Lineages"));
    m_lineages->setPopupMode(QToolButton::InstantPopup);
    m_lineages->setMenu(m_lineageMenu);
    m_lineages->setToolTip(tr("Which lineages are laid over each other"));
    connect(m_lineageMenu, &TickMenu::aboutToShow, this, &StoryPanel::fillLineages);
    m_tableButton->setText(tr("Table"));
    m_tableButton->setCheckable(true);
    m_tableButton->setFocusPolicy(Qt::TabFocus);

    auto *bar = new FlowLayout(6);
    bar->setContentsMargins(8, 4, 8, 2);
    bar->addWidget(m_views);
    bar->addWidget(m_source);
    bar->addWidget(m_scale);
    bar->addWidget(m_lineages);
    bar->addWidget(m_tableButton);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(bar);
    layout->addWidget(m_stack, 1);
    connect(m_views, &QComboBox::currentIndexChanged, this, &StoryPanel::refresh);
    connect(m_source, &SegmentedSwitch::currentChanged, this, &StoryPanel::refresh);
    connect(m_scale, &SegmentedSwitch::currentChanged, this, &StoryPanel::refresh);
    connect(m_tableButton, &QToolButton::toggled, this, &StoryPanel::showTable);
}

QAction *StoryPanel::addCommand(const QString &id, const QString &text, const QKeySequence &key,
                                const std::function<void()> &act, bool isWindowWide)
{
    auto *action = new QAction(text, this);
    action->setObjectName(id);
    action->setShortcut(key);
    action->setShortcutContext(isWindowWide ? Qt::WindowShortcut : Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, act);
    if (isWindowWide) {
        m_commands << action;
    } else {
        m_canvas->addAction(action);
        m_table->addAction(action);
    }
    return action;
}

void StoryPanel::chooseView(View view)
{
    setView(view);
    showTable(false);
}

void StoryPanel::buildCommands()
{
    addCommand(QStringLiteral("story.waterfall"), tr("Story: waterfall"), Qt::Key_1,
               [this] { chooseView(View::Waterfall); });
    addCommand(QStringLiteral("story.graph"), tr("Story: graph with lanes"), Qt::Key_2,
               [this] { chooseView(View::Graph); });
    addCommand(QStringLiteral("story.overlay"), tr("Story: lineages over each other"), Qt::Key_3,
               [this] { chooseView(View::Overlay); });
    addCommand(QStringLiteral("story.speedups"), tr("Story: speedups beside the published ones"), Qt::Key_4,
               [this] { chooseView(View::Speedups); });
    addCommand(QStringLiteral("story.trace"), tr("Story: the lineage taken apart"), Qt::Key_5,
               [this] { chooseView(View::Trace); });
    addCommand(QStringLiteral("story.steps"), tr("Story: steps of the run"), Qt::Key_6,
               [this] { chooseView(View::Steps); });
    addCommand(QStringLiteral("story.roundtrip"), tr("Story: roundtrips of the lineage"), Qt::Key_7,
               [this] { chooseView(View::Roundtrip); });
    QAction *table = addCommand(QStringLiteral("story.table"), tr("Story: picture or table"), Qt::Key_T,
                                [this] { showTable(!showsTable()); });
    m_tableButton->setToolTip(textWithKey(tr("The same as a table"), table));
    addCommand(QStringLiteral("story.source"), tr("Story: lineage or run"), Qt::Key_L, [this] {
        if (m_runs->current())
            showRun(!showsRun());
        else
            emit message(tr("Choose a run in the panel Runs first."));
    });
    addCommand(
        QStringLiteral("story.present"), tr("Present the lineage"), Qt::SHIFT | Qt::Key_F5,
        [this] { present(); }, true);
    addCommand(
        QStringLiteral("story.compare"), tr("Compare two states…"), Qt::CTRL | Qt::SHIFT | Qt::Key_D,
        [this] { emit compareRequested(); }, true);
}

/// Of the windows that the story opens: commands like all others, listed and remapped with them.
void StoryPanel::buildSideCommands()
{
    const auto add = [this](QList<QAction *> &list, const char *id, const QString &text,
                            const QList<QKeySequence> &keys, const std::function<void()> &act) {
        auto *action = new QAction(text, this);
        action->setObjectName(QLatin1String(id));
        action->setShortcuts(keys);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        connect(action, &QAction::triggered, this, act);
        list << action;
    };
    const auto turn = [this](int by) {
        return [this, by] {
            if (m_presenter)
                m_presenter->turn(by);
        };
    };
    add(m_presenterCommands, "present.next", tr("Presentation: next page"),
        {Qt::Key_Right, Qt::Key_Down, Qt::Key_Space, Qt::Key_PageDown}, turn(1));
    add(m_presenterCommands, "present.previous", tr("Presentation: previous page"),
        {Qt::Key_Left, Qt::Key_Up, Qt::Key_Backspace, Qt::Key_PageUp}, turn(-1));
    add(m_presenterCommands, "present.first", tr("Presentation: first page"), {Qt::Key_Home}, turn(-100000));
    add(m_presenterCommands, "present.last", tr("Presentation: last page"), {Qt::Key_End}, turn(100000));
    add(m_presenterCommands, "present.end", tr("Presentation: end"), {Qt::Key_Escape}, [this] {
        if (m_presenter)
            m_presenter->hide();
    });
    const auto compared = [this](void (CompareWindow::*act)()) {
        return [this, act] {
            if (m_comparison)
                (m_comparison.get()->*act)();
        };
    };
    add(m_comparisonCommands, "compare.nextChange", tr("Comparison: next change"), {Qt::Key_F8},
        compared(&CompareWindow::nextChange));
    add(m_comparisonCommands, "compare.previousChange", tr("Comparison: previous change"),
        {Qt::SHIFT | Qt::Key_F8}, compared(&CompareWindow::previousChange));
    add(m_comparisonCommands, "compare.swap", tr("Comparison: the other way round"), {Qt::Key_S},
        compared(&CompareWindow::swap));
    add(m_comparisonCommands, "compare.close", tr("Comparison: close"), {Qt::Key_Escape}, [this] {
        if (m_comparison)
            m_comparison->hide();
    });
    const auto ofCode = [this](const char *id, const QString &text, const QKeySequence &key) {
        auto *action = new QAction(text, this);
        action->setObjectName(QLatin1String(id));
        action->setShortcut(key);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        return action;
    };
    m_copyCode = ofCode("compare.copyCode", tr("Comparison: copy the selected code"), QKeySequence::Copy);
    m_selectCode =
        ofCode("compare.selectCode", tr("Comparison: select all code of this side"), QKeySequence::SelectAll);
}

} // namespace klineage::ui
