// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/library/librarypanel.h"

#include "core/workspace/workspace.h"
#include "ui/library/facetbar.h"
#include "ui/library/librarydelegate.h"
#include "ui/library/librarytree.h"
#include "ui/models/libraryfilter.h"
#include "ui/models/librarymodel.h"
#include "ui/models/selection.h"
#include "ui/models/viewed.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/icons.h"
#include "ui/style/keyscope.h"
#include "ui/style/theme.h"

#include <QAction>
#include <QEvent>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QResizeEvent>
#include <QScopedValueRollback>
#include <QScrollBar>
#include <QStackedWidget>
#include <QTimer>
#include <QToolButton>
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
    , m_filter(new LibraryFilter(m_model, this))
    , m_delegate(new LibraryDelegate(this))
    , m_filterField(new QLineEdit)
    , m_facets(new FacetBar(m_filter))
    , m_toReview(new QToolButton(this))
    , m_stack(new QStackedWidget)
    , m_tree(new LibraryTree)
    , m_empty(new QLabel)
    , m_later(new QTimer(this))
{
    buildCommands();
    m_filterField->setObjectName(QStringLiteral("filterField"));
    m_filterField->setPlaceholderText(tr("Filter: words, life:hypothesis, lint:error…"));
    m_filterField->setAccessibleName(tr("Library filter"));
    m_filterField->setToolTip(FacetBar::help());
    m_filterField->setClearButtonEnabled(true);
    m_filterField->installEventFilter(this);
    connect(m_filterField, &QLineEdit::textChanged, this, [this](const QString &pattern) {
        applyFilter(pattern);
        showFirstMatch();
    });
    connect(m_facets, &FacetBar::toggled, this, [this](Facet facet, const QString &word) {
        m_filterField->setText(
            QString::fromStdString(toggled(m_filterField->text().toStdString(), facet, word.toStdString())));
    });

    m_tree->setModel(m_filter);
    m_tree->setItemDelegate(m_delegate);
    m_tree->setAccessibleName(tr("Library"));
    connect(m_tree->selectionModel(), &QItemSelectionModel::currentChanged, this, &LibraryPanel::choose);
    connect(m_tree->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
        // Of a single row it is not known yet whether it becomes the current one: choose() follows.
        if (m_tree->selectionModel()->selectedIndexes().size() == 1)
            m_selection->setMarkedCards({});
        else
            showMarked();
    });
    connect(m_tree, &QTreeView::collapsed, this,
            [this](const QModelIndex &i) { m_collapsed.insert(i.data(LibraryModel::KeyRole).toString()); });
    connect(m_tree, &QTreeView::expanded, this,
            [this](const QModelIndex &i) { m_collapsed.remove(i.data(LibraryModel::KeyRole).toString()); });
    connect(m_filter, &QAbstractItemModel::modelReset, this, &LibraryPanel::restoreExpansion);

    m_empty->setWordWrap(true);
    m_empty->setTextFormat(Qt::RichText);
    m_empty->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_empty->setMargin(12);
    m_empty->setForegroundRole(QPalette::PlaceholderText);

    m_stack->addWidget(m_tree);
    m_stack->addWidget(m_empty);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_filterField);
    layout->addWidget(m_facets);
    m_stack->setSizePolicy(QSizePolicy::Preferred,
                           QSizePolicy::Ignored); // the list scrolls: facets stay whole
    layout->addWidget(m_stack, 1);
    setFocusProxy(m_tree);

    connect(workspace, &WorkspaceModel::loaded, this, &LibraryPanel::refresh);
    connect(workspace, &WorkspaceModel::reading, this, &LibraryPanel::refresh);
    connect(workspace, &WorkspaceModel::failed, this, &LibraryPanel::refresh);
    connect(workspace, &WorkspaceModel::lineageChanged, this, &LibraryPanel::refresh);
    // Of many cards that were written at once the list is made anew once.
    m_later->setSingleShot(true);
    m_later->setInterval(0);
    connect(m_later, &QTimer::timeout, this, &LibraryPanel::refresh);
    connect(workspace, &WorkspaceModel::cardChanged, m_later, qOverload<>(&QTimer::start));
    connect(selection, &Selection::lineageChanged, this, &LibraryPanel::showLineage);
    connect(selection, &Selection::cardChanged, this, &LibraryPanel::showSelection);
    refresh();
}

QAction *LibraryPanel::command(const QString &id, const QString &text, const QKeySequence &key,
                               const std::function<void()> &act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(id);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, act);
    return action;
}

void LibraryPanel::buildCommands()
{
    actInAllPanes(command(QStringLiteral("library.filter"), tr("Filter the library"),
                          QKeySequence(Qt::Key_Slash), [this] {
                              m_filterField->setFocus(Qt::ShortcutFocusReason);
                              m_filterField->selectAll();
                          }));
    QAction *facets =
        command(QStringLiteral("library.facets"), tr("Choose facets of cards"),
                QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F), [this] { m_facets->focusFirst(); });
    facets->setShortcutContext(Qt::WindowShortcut);
    addAction(facets);
    addAction(command(QStringLiteral("library.clearFilter"), tr("Show the whole library again"),
                      QKeySequence(Qt::Key_Escape), [this] { clearFilter(); }));
    QAction *first = command(QStringLiteral("library.firstToReview"), tr("Open the first card to review"), {},
                             [this] { openFirstToReview(); });
    first->setShortcutContext(Qt::WindowShortcut);
    addAction(first);
    m_toReview->setObjectName(QStringLiteral("titleBarSubtitle"));
    m_toReview->setAutoRaise(true);
    m_toReview->setCursor(Qt::PointingHandCursor);
    m_toReview->setFocusPolicy(Qt::TabFocus);
    m_toReview->setToolTip(first->text());
    m_toReview->hide();
    connect(m_toReview, &QToolButton::clicked, first, &QAction::trigger);
    m_tree->addActions(
        {command(QStringLiteral("library.selectAndGoOn"), tr("Select this card too, and go on"),
                 QKeySequence(Qt::Key_Space), [this] { m_tree->goOn(true); }),
         command(QStringLiteral("library.skip"), tr("Go on without selecting this card"),
                 QKeySequence(Qt::SHIFT | Qt::Key_Space), [this] { m_tree->goOn(false); }),
         command(QStringLiteral("library.selectAll"), tr("Select all cards that are shown"),
                 QKeySequence::SelectAll, [this] { m_tree->selectAll(); })});
}

/// First of what is selected together, then of the filter.
void LibraryPanel::clearFilter()
{
    if (!m_selection->markedCards().isEmpty())
        unmark();
    else
        m_filterField->clear();
}

void LibraryPanel::unmark()
{
    m_tree->selectionModel()->select(m_tree->currentIndex(), QItemSelectionModel::ClearAndSelect);
}

/// Several cards, or one that is not the one that is looked at.
void LibraryPanel::showMarked()
{
    QStringList cards;
    for (const QModelIndex &index : m_tree->selectionModel()->selectedIndexes()) {
        if (LibraryModel::kindOf(index) == Kind::Card)
            cards << index.data(LibraryModel::KeyRole).toString();
    }
    const QModelIndex current = m_tree->currentIndex();
    const bool isCurrent = cards.size() == 1 && current.isValid()
                           && current.data(LibraryModel::KeyRole).toString() == cards.front();
    m_selection->setMarkedCards(isCurrent ? QStringList() : cards);
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
    m_toReview->setText(windowTitle());
    m_toReview->setVisible(toReview.isValid() && m_toReview->parentWidget() != this);
    applyFilter(m_filterField->text());
    if (onCard)
        showCard(m_selection->card());
    showSelection();
    m_tree->doItemsLayout();
    m_tree->verticalScrollBar()->setValue(scrolled);
}

void LibraryPanel::revealCard()
{
    if (m_later->isActive()) {
        m_later->stop();
        refresh();
    }
    const QModelIndex current = m_tree->currentIndex();
    if (current.isValid() && LibraryModel::kindOf(current) == Kind::Card)
        m_tree->scrollTo(current);
}

void LibraryPanel::setViewed(const Viewed *viewed)
{
    m_delegate->setViewed(viewed);
    m_filter->setViewed(viewed);
    connect(viewed, &Viewed::changed, m_tree->viewport(), qOverload<>(&QWidget::update));
    connect(viewed, &Viewed::changed, this, [this] {
        if (!m_filter->query().of(Facet::Viewed).empty())
            applyFilter(m_filterField->text());
    });
}

void LibraryPanel::setDevices(const std::vector<gate::DeviceInfo> &devices)
{
    m_model->setDevices(devices);
    if (m_workspace->isLoaded())
        refresh();
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
    m_choseCard = true;
    m_selection->setCard(card);
    emit cardChosen(card);
}

void LibraryPanel::openFirstToReview()
{
    const QModelIndex section = m_model->find(Kind::Section, QStringLiteral("to-review"));
    if (!section.isValid())
        return;
    if (!m_filter->mapFromSource(section).isValid())
        m_filterField->clear();
    const QModelIndex first = m_filter->index(0, 0, m_filter->mapFromSource(section));
    m_tree->expand(first.parent());
    chooseCard(first.data(LibraryModel::KeyRole).toString());
    m_tree->setFocus(Qt::ShortcutFocusReason);
}

void LibraryPanel::setCardsFirst(bool first)
{
    if (first == m_filter->cardsFirst())
        return;
    m_filter->setCardsFirst(first);
    if (first) {
        m_tree->scrollToTop();
        showCard(m_selection->card());
    } else if (!m_choseCard) {
        markLineage(true);
    }
    m_tree->scrollTo(m_tree->currentIndex());
}

void LibraryPanel::applyFilter(const QString &pattern)
{
    const QScopedValueRollback<bool> following(m_following, true);
    m_filter->setQuery(pattern);
    m_delegate->setPattern(QString::fromStdString(m_filter->query().text));
    restoreExpansion();
    m_facets->showQuery();
    if (!m_tree->currentIndex().isValid()) { // the filter had left it out, and may have it again
        if (m_choseCard)
            showCard(m_selection->card());
        if (!m_tree->currentIndex().isValid())
            showSelection();
    }
    showMarked();
    if (m_filter->rowCount() > 0) {
        m_empty->setText({}); // a layout of the panel asks what is hidden for its height too
        m_stack->setCurrentWidget(m_tree);
        m_tree->layOutNow();
        m_tree->viewport()->update();
        return;
    }
    if (pattern.trimmed().isEmpty())
        m_empty->setText(
            tr("This workspace is empty. Add a workload as workloads/<name>/workload.toml, a lineage in "
               "workloads/<name>/lineages/<platform>/, or a card in skills/<name>/; README.md shows how.")
                .toHtmlEscaped());
    else
        showEmpty(pattern.trimmed());
    m_stack->setCurrentWidget(m_empty);
}

/// Of a filter that has just been typed the list begins with what it found; without one it goes back to what is looked at.
void LibraryPanel::showFirstMatch()
{
    if (m_filter->isFiltering())
        m_tree->scrollToTop();
    else if (m_tree->currentIndex().isValid())
        m_tree->scrollTo(m_tree->currentIndex());
}

void LibraryPanel::showEmpty(const QString &pattern)
{
    QString text = tr("Nothing matches “%1”. Esc shows everything again.").arg(pattern.toHtmlEscaped());
    for (const std::string &unknown : m_filter->query().unknown)
        text += QStringLiteral("<br><br>")
                + tr("“%1” names no facet.").arg(QString::fromStdString(unknown).toHtmlEscaped());
    m_empty->setText(text + QStringLiteral("<br><br>") + FacetBar::help());
}

void LibraryPanel::restoreExpansion()
{
    const bool filtering = m_filter->isFiltering();
    const QSet<QString> collapsed = m_collapsed;
    const auto open = [&](auto &self, const QModelIndex &parent) -> void {
        for (int row = 0; row < m_filter->rowCount(parent); ++row) {
            const QModelIndex index = m_filter->index(row, 0, parent);
            if (LibraryModel::kindOf(index) == Kind::Card)
                return; // no card has rows below it, nor have its neighbours
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
    showMarked();
    m_choseCard = LibraryModel::kindOf(proxyIndex) == Kind::Card;
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

/// Marks the selected lineage, unless the current row is the selected card. Where cards come first, marks the selected card, unless a
/// lineage was chosen here.
void LibraryPanel::showSelection()
{
    const QModelIndex current = m_tree->currentIndex();
    const bool onCard = current.isValid() && LibraryModel::kindOf(current) == Kind::Card;
    const QString key = current.data(LibraryModel::KeyRole).toString();
    if (onCard && key == m_selection->card())
        return;
    const bool choseLineage = m_tree->hasFocus() && !onCard && key == m_selection->lineageKey();
    const QModelIndex card = m_filter->mapFromSource(m_model->find(Kind::Card, m_selection->card()));
    if (m_filter->cardsFirst() && card.isValid() && !choseLineage) {
        showCard(m_selection->card());
        m_tree->scrollTo(card);
        return;
    }
    markLineage(!m_filter->cardsFirst());
}

/// Makes the selected lineage the current row, where it is shown.
void LibraryPanel::markLineage(bool scroll)
{
    const QScopedValueRollback<bool> following(m_following, true);
    const QModelIndex wanted =
        m_filter->mapFromSource(m_model->find(Kind::Lineage, m_selection->lineageKey()));
    if (!wanted.isValid() || wanted == m_tree->currentIndex())
        return;
    const int scrolled = m_tree->verticalScrollBar()->value();
    m_tree->setCurrentIndex(wanted);
    if (scroll)
        m_tree->scrollTo(wanted);
    else
        m_tree->verticalScrollBar()->setValue(scrolled);
}

void LibraryPanel::showLineage()
{
    const bool isShown =
        m_filter->mapFromSource(m_model->find(Kind::Lineage, m_selection->lineageKey())).isValid();
    if (m_selection->isLookingUp() || !isShown) {
        showSelection();
        return;
    }
    m_choseCard = false;
    if (m_filter->cardsFirst())
        showSelection();
    markLineage(true);
    m_tree->scrollTo(m_tree->currentIndex()); // also one that was scrolled away from
}

QSize LibraryPanel::minimumSizeHint() const
{
    constexpr int rows = 3;
    const int list = rows * (fontMetrics().height() + 6);
    return {QWidget::minimumSizeHint().width(),
            m_filterField->sizeHint().height() + m_facets->heightForWidth(width()) + list};
}

void LibraryPanel::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    if (event->size().width() != event->oldSize().width())
        updateGeometry(); // facets stand in more lines, or in fewer
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
