// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/library/librarypanel.h"

#include "core/workspace/workspace.h"
#include "ui/library/librarydelegate.h"
#include "ui/library/librarytree.h"
#include "ui/models/fuzzyfilter.h"
#include "ui/models/librarymodel.h"
#include "ui/models/selection.h"
#include "ui/models/viewed.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/icons.h"
#include "ui/style/theme.h"

#include <QEvent>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QScopedValueRollback>
#include <QScrollBar>
#include <QStackedWidget>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

using Kind = LibraryModel::Kind;

} // namespace

LibraryPanel::LibraryPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_model(new LibraryModel(this))
    , m_filter(new FuzzyFilter(this))
    , m_delegate(new LibraryDelegate(this))
    , m_filterField(new QLineEdit)
    , m_stack(new QStackedWidget)
    , m_tree(new LibraryTree)
    , m_empty(new QLabel)
{
    m_filter->setSourceModel(m_model);
    m_filter->setFilterRole(LibraryModel::SearchRole);

    m_filterField->setObjectName(QStringLiteral("filterField"));
    m_filterField->setPlaceholderText(tr("Filter workloads, lineages and cards"));
    m_filterField->setAccessibleName(tr("Library filter"));
    m_filterField->setClearButtonEnabled(true);
    m_filterField->installEventFilter(this);
    connect(m_filterField, &QLineEdit::textChanged, this, &LibraryPanel::applyFilter);

    m_tree->setModel(m_filter);
    m_tree->setItemDelegate(m_delegate);
    m_tree->setAccessibleName(tr("Library"));
    connect(m_tree->selectionModel(), &QItemSelectionModel::currentChanged, this, &LibraryPanel::choose);
    connect(m_tree, &QTreeView::collapsed, this,
            [this](const QModelIndex &i) { m_collapsed.insert(i.data(LibraryModel::KeyRole).toString()); });
    connect(m_tree, &QTreeView::expanded, this,
            [this](const QModelIndex &i) { m_collapsed.remove(i.data(LibraryModel::KeyRole).toString()); });
    connect(m_filter, &QAbstractItemModel::modelReset, this, &LibraryPanel::restoreExpansion);

    m_empty->setWordWrap(true);
    m_empty->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_empty->setMargin(12);
    m_empty->setForegroundRole(QPalette::PlaceholderText);

    m_stack->addWidget(m_tree);
    m_stack->addWidget(m_empty);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_filterField);
    layout->addWidget(m_stack, 1);
    setFocusProxy(m_tree);

    connect(workspace, &WorkspaceModel::loaded, this, &LibraryPanel::refresh);
    connect(workspace, &WorkspaceModel::reading, this, &LibraryPanel::refresh);
    connect(workspace, &WorkspaceModel::failed, this, &LibraryPanel::refresh);
    connect(workspace, &WorkspaceModel::lineageChanged, this, &LibraryPanel::refresh);
    connect(workspace, &WorkspaceModel::cardChanged, this, &LibraryPanel::refresh);
    connect(selection, &Selection::lineageChanged, this, &LibraryPanel::showSelection);
    connect(selection, &Selection::cardChanged, this, &LibraryPanel::showSelection);
    refresh();
}

void LibraryPanel::refresh()
{
    if (!m_workspace->isLoaded()) {
        m_empty->setText(m_workspace->isReading() ? tr("Reading the workspace…")
                                                  : tr("No workspace is open. Ctrl+O opens one."));
        m_stack->setCurrentWidget(m_empty);
        return;
    }
    // A verdict moves its card to another section; the list stays where it was.
    const QModelIndex current = m_tree->currentIndex();
    const bool onCard = current.isValid() && LibraryModel::kindOf(current) == Kind::Card;
    const int scrolled = m_tree->verticalScrollBar()->value();
    m_model->refresh(m_workspace->workspace());
    const QModelIndex toReview = m_model->find(Kind::Section, QStringLiteral("to-review"));
    setWindowTitle(toReview.isValid() ? tr("%1 to review").arg(m_model->rowCount(toReview)) : QString());
    applyFilter(m_filterField->text());
    if (onCard)
        showCard(m_selection->card());
    showSelection();
    m_tree->doItemsLayout();
    m_tree->verticalScrollBar()->setValue(scrolled);
}

void LibraryPanel::setViewed(const Viewed *viewed)
{
    m_delegate->setViewed(viewed);
    connect(viewed, &Viewed::changed, m_tree->viewport(), qOverload<>(&QWidget::update));
}

/// Makes the card the current row, where it is shown, without choosing it.
void LibraryPanel::showCard(const QString &card)
{
    const QScopedValueRollback<bool> following(m_following, true);
    const QModelIndex index = m_filter->mapFromSource(m_model->find(Kind::Card, card));
    if (!index.isValid() || index == m_tree->currentIndex())
        return;
    m_tree->selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect);
}

QString LibraryPanel::neighbourCard(const QString &card, int by) const
{
    QStringList cards;
    const auto collect = [&](auto &self, const QModelIndex &parent) -> void {
        for (int row = 0; row < m_filter->rowCount(parent); ++row) {
            const QModelIndex index = m_filter->index(row, 0, parent);
            if (LibraryModel::kindOf(index) == Kind::Card)
                cards << index.data(LibraryModel::KeyRole).toString();
            self(self, index);
        }
    };
    collect(collect, {});
    const qsizetype at = cards.indexOf(card);
    return at < 0 ? (by > 0 ? cards.value(0) : cards.value(cards.size() - 1)) : cards.value(at + by);
}

void LibraryPanel::chooseCard(const QString &card)
{
    const QModelIndex index = m_filter->mapFromSource(m_model->find(Kind::Card, card));
    if (index.isValid()) {
        showCard(card);
        m_tree->scrollTo(index, QAbstractItemView::EnsureVisible);
    }
    m_selection->setCard(card);
    emit cardChosen(card);
}

void LibraryPanel::applyFilter(const QString &pattern)
{
    const QScopedValueRollback<bool> following(m_following, true);
    m_delegate->setPattern(pattern.simplified());
    m_filter->setPattern(pattern);
    restoreExpansion();
    if (m_filter->rowCount() > 0) {
        m_stack->setCurrentWidget(m_tree);
        m_tree->viewport()->update();
        return;
    }
    if (pattern.trimmed().isEmpty())
        m_empty->setText(
            tr("This workspace is empty. Add a workload as workloads/<name>/workload.toml, a lineage in "
               "workloads/<name>/lineages/<platform>/, or a card in skills/<name>/; README.md shows how."));
    else
        m_empty->setText(tr("Nothing matches “%1”. Esc shows everything again.").arg(pattern.trimmed()));
    m_stack->setCurrentWidget(m_empty);
}

void LibraryPanel::restoreExpansion()
{
    const bool filtering = !m_filter->pattern().isEmpty();
    const QSet<QString> collapsed = m_collapsed;
    const auto open = [&](auto &self, const QModelIndex &parent) -> void {
        for (int row = 0; row < m_filter->rowCount(parent); ++row) {
            const QModelIndex index = m_filter->index(row, 0, parent);
            m_tree->setExpanded(
                index, filtering || !collapsed.contains(index.data(LibraryModel::KeyRole).toString()));
            self(self, index);
        }
    };
    open(open, {});
    m_collapsed = collapsed;
}

void LibraryPanel::choose(const QModelIndex &proxyIndex)
{
    if (m_following || !proxyIndex.isValid())
        return;
    const QString key = proxyIndex.data(LibraryModel::KeyRole).toString();
    switch (LibraryModel::kindOf(proxyIndex)) {
    case Kind::Lineage:
        if (const lineage::Lineage *lineage = m_workspace->lineage(key);
            lineage && key != m_selection->lineageKey())
            m_selection->setLineage(
                key, lineage->states.empty() ? QString() : QString::fromStdString(lineage->states.back().id));
        break;
    case Kind::Card:
        m_selection->setCard(key);
        emit cardChosen(key);
        break;
    case Kind::Workload:
    case Kind::Section:
        break;
    }
}

/// Marks the selected lineage, unless the current row is the selected card.
void LibraryPanel::showSelection()
{
    const QScopedValueRollback<bool> following(m_following, true);
    const QModelIndex current = m_tree->currentIndex();
    if (current.isValid() && LibraryModel::kindOf(current) == Kind::Card
        && current.data(LibraryModel::KeyRole).toString() == m_selection->card())
        return;
    const QModelIndex wanted =
        m_filter->mapFromSource(m_model->find(Kind::Lineage, m_selection->lineageKey()));
    if (!wanted.isValid() || wanted == current)
        return;
    m_tree->setCurrentIndex(wanted);
    m_tree->scrollTo(wanted);
}

bool LibraryPanel::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_filterField && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent *>(event)->key();
        if (key == Qt::Key_Escape && !m_filterField->text().isEmpty()) {
            m_filterField->clear();
            return true;
        }
        if (key == Qt::Key_Down || key == Qt::Key_Return || key == Qt::Key_Enter) {
            // The first row that can be chosen, not the heading above it.
            QModelIndex index = m_filter->index(0, 0);
            while (index.isValid()
                   && (LibraryModel::kindOf(index) == Kind::Section
                       || LibraryModel::kindOf(index) == Kind::Workload))
                index = m_tree->indexBelow(index);
            if (index.isValid()) {
                m_tree->setCurrentIndex(index);
                m_tree->setFocus();
            }
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace klineage::ui
