// SPDX-License-Identifier: GPL-3.0-or-later
// Widgets and actions of ComparePanel.
#include "ui/experiments/compare/comparepanel.h"
#include "ui/experiments/compare/comparestore.h"
#include "ui/style/flowlayout.h"
#include "ui/style/icons.h"
#include "ui/style/keyscope.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/theme.h"

#include <QAction>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

namespace klineage::ui {

QAction *ComparePanel::addPanelAction(const char *name, const QString &text, const QKeySequence &key,
                                      const std::function<void()> &act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QStringLiteral("compare.") + QLatin1String(name));
    action->setShortcut(key);
    // Single letters act only while the panel has the focus.
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    if (act)
        connect(action, &QAction::triggered, this, act);
    if (key != QKeySequence(Qt::Key_Space)) // which presses the buttons
        addAction(action);
    return action;
}

void ComparePanel::buildActions()
{
    addPanelAction("filter", tr("Filter the runs"), QKeySequence(Qt::Key_Slash), [this] {
        m_filter->setFocus(Qt::ShortcutFocusReason);
        m_filter->selectAll();
    });
    m_pick =
        addPanelAction("columns", tr("Pick columns…"), QKeySequence(Qt::Key_C), [this] { pickColumns(); });
    m_pick->setIconText(tr("Columns…"));
    addPanelAction("sort", tr("Sort by the column, and the other way round"), QKeySequence(Qt::Key_S),
                   [this] { sortByCurrent(); });
    addPanelAction("group", tr("Group by the column, and not"), QKeySequence(Qt::Key_G),
                   [this] { groupByCurrent(); });
    addPanelAction("fold", tr("Fold the group, and open it"), QKeySequence(Qt::Key_Space),
                   [this] { foldCurrent(); });
    m_differ =
        addPanelAction("differ", tr("Only columns in which runs differ"), QKeySequence(Qt::Key_D), [this] {
            change([this](CompareView &view) { view.onlyDifferent = m_differ->isChecked(); });
        });
    m_differ->setCheckable(true);
    m_differ->setIconText(tr("Differing"));
    addPanelAction("only", tr("Only runs with this value"), QKeySequence(Qt::Key_O),
                   [this] { filterByCurrent(QStringLiteral("=")); });
    addPanelAction("without", tr("No runs with this value"), QKeySequence(Qt::SHIFT | Qt::Key_O),
                   [this] { filterByCurrent(QStringLiteral("!=")); });
    addPanelAction("clear", tr("Show all runs again"), QKeySequence(Qt::Key_Escape), [this] {
        change([](CompareView &view) { view.filter.clear(); });
        m_table->setFocus();
    });
    addPanelAction("columnLeft", tr("Move the column to the left"),
                   QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Left), [this] { moveColumn(-1); });
    addPanelAction("columnRight", tr("Move the column to the right"),
                   QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Right), [this] { moveColumn(1); });
    m_moveUp =
        addPanelAction("pickUp", tr("Columns: move the column up"), QKeySequence(Qt::ALT | Qt::Key_Up), {});
    m_moveDown = addPanelAction("pickDown", tr("Columns: move the column down"),
                                QKeySequence(Qt::ALT | Qt::Key_Down), {});
    for (QAction *move : {m_moveUp, m_moveDown})
        removeAction(move); // they act in the picker
    m_export = addPanelAction("export", tr("Export the runs as CSV…"), QKeySequence(Qt::CTRL | Qt::Key_S),
                              [this] { exportCsv(); });
    m_export->setIcon(icon(QStringLiteral("export")));
    m_export->setIconText(tr("CSV…"));
    addPanelAction("copy", tr("Copy the runs as CSV"), QKeySequence(QKeySequence::Copy),
                   [this] { copyCsv(); });
    addPanelAction("refresh", tr("Read the runs again"), {}, [this] { m_store->refresh(); });
}

void ComparePanel::layOut()
{
    m_table = makePlainTable(m_model, tr("Recorded runs"));
    m_table->setSelectionBehavior(QAbstractItemView::SelectItems); // keys are about the column, too
    m_table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_table->setContextMenuPolicy(Qt::ActionsContextMenu);
    QList<QAction *> meant = findChildren<QAction *>(Qt::FindDirectChildrenOnly);
    meant.removeIf([this](const QAction *action) { return action == m_moveUp || action == m_moveDown; });
    m_table->addActions(meant);
    QHeaderView *header = m_table->horizontalHeader();
    header->setSectionsMovable(true);
    header->setSectionsClickable(true);
    header->setHighlightSections(true);
    // Not setSortingEnabled(): it sorts at once, before anybody asked.
    connect(header, &QHeaderView::sectionClicked, this, [this](int section) {
        const bool isSame = m_model->view().sort == m_model->column(section).id;
        const bool isDescending = isSame ? !m_model->view().descending : m_model->column(section).isNumber();
        change([&](CompareView &view) {
            view.sort = m_model->column(section).id;
            view.descending = isDescending;
        });
    });
    m_openButton = new QPushButton(tr("Open a folder of an experiment…"));
    m_openButton->setObjectName(QStringLiteral("openExperiment"));
    connect(m_openButton, &QPushButton::clicked, this, &ComparePanel::openExperimentRequested);
    m_emptyPage = makeMessagePage(m_empty, m_openButton);
    m_stack->addWidget(m_table);
    m_stack->addWidget(m_emptyPage);

    m_filter->setAccessibleName(tr("Filter of the runs"));
    m_filter->setClearButtonEnabled(true);
    m_filter->setMinimumWidth(160);
    m_filter->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_filter->setPlaceholderText(tr("Filter: words, policy=klineage, gain>=1.5, model!=…"));
    m_filter->setToolTip(tr(
        "Words that a text of the run contains, and terms: column=value, !=, ~ and !~ (contains), <, <=, >, >=. "
        "All of them must hold; quotes hold blanks together."));
    m_group->setAccessibleName(tr("Groups"));
    m_group->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_summary->setForegroundRole(QPalette::PlaceholderText);
    m_problem->setTextFormat(Qt::PlainText);
    m_problem->setWordWrap(true);
    m_problem->setContentsMargins(10, 0, 10, 4);
    m_problem->setObjectName(QStringLiteral("compareProblem"));
    auto *row = new FlowLayout(6);
    row->setContentsMargins(8, 4, 8, 4);
    row->addWidget(m_filter);
    row->addWidget(m_group);
    for (QAction *action : {m_differ, m_pick, m_export}) {
        auto *button = new QToolButton;
        button->setDefaultAction(action);
        button->setToolTip(textWithKey(action->text(), action));
        button->setToolButtonStyle(action->icon().isNull() ? Qt::ToolButtonTextOnly
                                                           : Qt::ToolButtonTextBesideIcon);
        button->setIconSize(QSize(13, 13));
        button->setFocusPolicy(Qt::TabFocus);
        row->addWidget(button);
    }
    row->addWidget(m_summary);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(row);
    layout->addWidget(m_problem);
    layout->addWidget(m_stack, 1);
    setFocusProxy(m_table);
}

} // namespace klineage::ui
