// SPDX-License-Identifier: GPL-3.0-or-later
// Widgets and actions of ExperimentsPanel.
#include "ui/experiments/experimentplot.h"
#include "ui/experiments/experimentspanel.h"
#include "ui/experiments/experimentstore.h"
#include "ui/experiments/policytablemodel.h"
#include "ui/experiments/runtablemodel.h"
#include "ui/experiments/spreaddelegate.h"
#include "ui/style/icons.h"
#include "ui/style/plainwidgets.h"

#include <QAction>
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>

namespace klineage::ui {

namespace {

QToolButton *barButton(QAction *action)
{
    auto *button = new QToolButton;
    button->setDefaultAction(action);
    button->setFocusPolicy(Qt::TabFocus);
    button->setIconSize(QSize(13, 13));
    return button;
}

} // namespace

QAction *ExperimentsPanel::addPanelAction(const QString &name, const QString &text, const QKeySequence &key,
                                          const std::function<void()> &act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QStringLiteral("experiments.") + name);
    action->setShortcut(key);
    // Single letters act only while the panel has the focus.
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, act);
    addAction(action);
    return action;
}

void ExperimentsPanel::buildActions()
{
    m_refresh = addPanelAction(QStringLiteral("refresh"), tr("Read the experiments again"), {},
                               [this] { m_store->refresh(); });
    m_refresh->setIcon(icon(QStringLiteral("reset")));
    m_open = addPanelAction(QStringLiteral("open"), tr("Open a folder of an experiment…"), {},
                            [this] { openFolder(); });
    m_close =
        addPanelAction(QStringLiteral("close"), tr("Close the opened folder of the experiment"), {}, [this] {
            m_store->closeFolder();
            emit folderOpened();
        });
    m_logarithmic =
        addPanelAction(QStringLiteral("logarithmic"), tr("Logarithmic speedups"), QKeySequence(Qt::Key_L),
                       [this] { m_plot->setLogarithmic(m_logarithmic->isChecked()); });
    m_logarithmic->setIconText(tr("Log"));
    m_logarithmic->setCheckable(true);
    addPanelAction(QStringLiteral("fit"), tr("Fit the plots"), QKeySequence(Qt::Key_F),
                   [this] { m_plot->fit(); });
    const auto csv = [this](QString (*make)(const ExperimentEntry &)) {
        return [this, make] { return m_shown ? make(*m_shown) : QString(); };
    };
    const auto runs = csv(
        [](const ExperimentEntry &entry) { return QString::fromStdString(run::resultsCsv(entry.results)); });
    const auto trajectories = csv([](const ExperimentEntry &entry) {
        return QString::fromStdString(run::trajectoriesCsv(entry.results));
    });
    const auto policies = csv(&policiesCsv);
    m_exportMenu->addAction(addPanelAction(QStringLiteral("exportPlot"),
                                           tr("Export the plot as PNG, SVG or PDF…"), {},
                                           [this] { exportPlot(); }));
    m_exportMenu->addSeparator();
    const auto addExport = [this](const char *name, const QString &text, const QString &what,
                                  const std::function<QString()> &make) {
        m_exportMenu->addAction(
            addPanelAction(QLatin1String(name), text, {}, [this, what, make] { exportText(what, make); }));
    };
    addExport("exportPolicies", tr("Export the table of policies as CSV…"), QStringLiteral("policies"),
              policies);
    addExport("exportRuns", tr("Export the table of runs as CSV…"), QStringLiteral("runs"), runs);
    addExport("exportTrajectories", tr("Export all steps as CSV…"), QStringLiteral("trajectories"),
              trajectories);
    m_exportMenu->addSeparator();
    m_exportMenu->addAction(addPanelAction(QStringLiteral("copyPolicies"), tr("Copy the table of policies"),
                                           {}, [this, policies] { copyText(tr("policies"), policies()); }));
    m_exportMenu->addAction(addPanelAction(QStringLiteral("copyRuns"), tr("Copy the table of runs"), {},
                                           [this, runs] { copyText(tr("runs"), runs()); }));
}

void ExperimentsPanel::buildViews()
{
    m_policies = makePlainTable(m_policyModel, tr("Policies of the experiment"));
    m_policies->setItemDelegateForColumn(PolicyTableModel::SpreadColumn, new SpreadDelegate(this));
    m_policies->setSelectionMode(QAbstractItemView::NoSelection);
    m_policies->horizontalHeader()->setMinimumSectionSize(30);
    m_policies->viewport()->installEventFilter(this);
    m_runs = makePlainTable(m_runModel, tr("Runs of the experiment"));
    m_runs->horizontalHeader()->setStretchLastSection(true);
    m_across = new QSplitter(Qt::Horizontal);
    m_down = new QSplitter(Qt::Vertical);
    m_down->addWidget(m_policies);
    m_down->addWidget(m_runs);
    m_across->addWidget(m_down);
    m_across->addWidget(m_plot);
    m_plot->setMinimumHeight(160);
    for (QSplitter *splitter : {m_across, m_down}) {
        splitter->setChildrenCollapsible(false);
        splitter->setHandleWidth(1);
    }
    m_contrasts->setAccessibleName(tr("Arms compared"));
    m_contrasts->setTextFormat(Qt::PlainText);
    m_contrasts->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_contrasts->setWordWrap(true);
    m_contrasts->setMargin(8);
    m_contrasts->setToolTip(
        tr("The root is the unit: its seeds are averaged. p of a two-sided permutation of signs over roots; "
           "interval of a bootstrap over roots, 95 %."));
    auto *page = new QWidget;
    auto *column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_contrasts);
    column->addWidget(m_across, 1);
    m_stack->addWidget(page);
    m_empty->setObjectName(QStringLiteral("emptyText"));
    m_empty->setTextFormat(Qt::RichText);
    m_empty->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_openButton = new QPushButton(m_open->text());
    m_openButton->setObjectName(QStringLiteral("openExperiment"));
    connect(m_openButton, &QPushButton::clicked, m_open, &QAction::trigger);
    m_emptyPage = makeMessagePage(m_empty, m_openButton);
    m_stack->addWidget(m_emptyPage);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(makeBar());
    layout->addWidget(m_stack, 1);
    setFocusProxy(m_runs);
}

QWidget *ExperimentsPanel::makeBar()
{
    m_experiments->setAccessibleName(tr("Experiment"));
    m_experiments->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_roots->setAccessibleName(tr("Root"));
    m_roots->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_summary->setForegroundRole(QPalette::PlaceholderText);
    m_summary->installEventFilter(this);
    m_summary->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    auto *exports = new QToolButton;
    exports->setText(tr("Export"));
    exports->setIcon(icon(QStringLiteral("export")));
    exports->setIconSize(QSize(13, 13));
    exports->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    exports->setPopupMode(QToolButton::InstantPopup);
    exports->setMenu(m_exportMenu);
    exports->setFocusPolicy(Qt::TabFocus);
    QToolButton *logarithmic = barButton(m_logarithmic);
    logarithmic->setToolButtonStyle(Qt::ToolButtonTextOnly);
    auto *bar = new QWidget;
    auto *row = new QHBoxLayout(bar);
    row->setContentsMargins(8, 4, 8, 4);
    row->setSpacing(6);
    row->addWidget(m_experiments);
    row->addWidget(m_summary, 1);
    row->addWidget(m_roots);
    row->addWidget(logarithmic);
    row->addWidget(exports);
    row->addWidget(barButton(m_refresh));
    return bar;
}

} // namespace klineage::ui
