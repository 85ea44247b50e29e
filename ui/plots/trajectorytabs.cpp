// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/trajectorytabs.h"

#include "ui/plots/runtrajectorypanel.h"
#include "ui/plots/trajectorypanel.h"
#include "ui/style/segmentedswitch.h"

#include <QHBoxLayout>
#include <QStackedWidget>
#include <QVBoxLayout>

namespace klineage::ui {

TrajectoryTabs::TrajectoryTabs(WorkspaceModel *workspace, Selection *selection, RunStore *runs,
                               QWidget *parent)
    : QWidget(parent)
    , m_switch(new SegmentedSwitch({tr("Lineage"), tr("Runs")}, SegmentedSwitch::Size::Small))
    , m_stack(new QStackedWidget)
    , m_trials(new TrajectoryPanel(workspace, selection))
    , m_runs(new RunTrajectoryPanel(runs))
{
    m_switch->setAccessibleName(tr("What the trajectory is of"));
    m_switch->setToolTips(
        {tr("Trials of the selected lineage, in their order"), tr("Runs: running best against dollars")});
    m_stack->addWidget(m_trials);
    m_stack->addWidget(m_runs);
    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(8, 4, 8, 2);
    bar->addWidget(m_switch);
    bar->addStretch(1);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(bar);
    layout->addWidget(m_stack, 1);
    setFocusProxy(m_trials);
    connect(m_switch, &SegmentedSwitch::currentChanged, this, [this](int index) {
        m_stack->setCurrentIndex(index);
        setFocusProxy(m_stack->currentWidget());
    });
}

void TrajectoryTabs::showRuns(bool runs)
{
    m_switch->setCurrentIndex(runs ? 1 : 0);
}

bool TrajectoryTabs::showsRuns() const
{
    return m_stack->currentWidget() == m_runs;
}

} // namespace klineage::ui
