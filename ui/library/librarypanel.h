// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/request.h"

#include <QKeySequence>
#include <QSet>
#include <QWidget>

#include <functional>
#include <vector>

class QAction;
class QLabel;
class QLineEdit;
class QStackedWidget;
class QTimer;
class QToolButton;

namespace klineage::ui {

class FacetBar;
class LibraryDelegate;
class LibraryFilter;
class LibraryModel;
class LibraryTree;
class Selection;
class Viewed;
class WorkspaceModel;

/// Workloads with their lineages, and the cards by state of review, under a live filter whose text has the facets in it. Choosing a row
/// sets the Selection, several cards its marked ones, and the row of what is selected elsewhere is shown. The window title of the panel
/// says what is left to review; the button of that text, "titleBarSubtitle", may be moved into the title bar of whatever holds the panel.
class LibraryPanel : public QWidget
{
    Q_OBJECT

public:
    LibraryPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);

    [[nodiscard]] LibraryModel *model() const { return m_model; }
    /// Marks what was viewed. Not owned; outlives the panel.
    void setViewed(const Viewed *viewed);
    /// Marks the lineages that run on what this machine has.
    void setDevices(const std::vector<gate::DeviceInfo> &devices);
    [[nodiscard]] QLineEdit *filterField() const { return m_filterField; }
    [[nodiscard]] FacetBar *facets() const { return m_facets; }
    [[nodiscard]] const LibraryFilter *filter() const { return m_filter; }

    /// The next (+1) or previous (-1) card of what the filter shows; empty at the ends. A card that is in no row begins at the end.
    [[nodiscard]] QString neighbourCard(const QString &card, int by) const;
    /// Makes a card the current row and selects it, as choosing it does.
    void chooseCard(const QString &card);
    /// Where a card is the current row, scrolls to it; also when the list is about to be made anew.
    void revealCard();
    /// Makes the selected lineage the current row, and scrolls to it. A lineage that is looked up for a card leaves the list on the card.
    void showLineage();
    /// For a curator: sections of cards come before the workloads, and the row that follows the selection is the one of its card.
    void setCardsFirst(bool first);
    /// Chooses the first card that waits for a review; where the filter shows none of them, it is cleared.
    void openFirstToReview();
    /// Of several selected rows the current one alone stays selected.
    void unmark();

    /// All facets and some rows, at the width that it has.
    [[nodiscard]] QSize minimumSizeHint() const override;

signals:
    /// A person chose a card here, rather than a step that has one.
    void cardChosen(const QString &card);

protected:
    void resizeEvent(QResizeEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void buildCommands();
    QAction *command(const QString &id, const QString &text, const QKeySequence &key,
                     const std::function<void()> &act);
    void refresh();
    void clearFilter();
    void showMarked();
    void showEmpty(const QString &pattern);
    void applyFilter(const QString &pattern);
    void showFirstMatch();
    void choose(const QModelIndex &proxyIndex);
    void showSelection();
    void markLineage(bool scroll);
    void showCard(const QString &card);
    void restoreExpansion();

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    LibraryModel *m_model;
    LibraryFilter *m_filter;
    LibraryDelegate *m_delegate;
    QLineEdit *m_filterField;
    FacetBar *m_facets;
    QToolButton *m_toReview; ///< "84 to review"
    QStackedWidget *m_stack;
    LibraryTree *m_tree;
    QLabel *m_empty;
    QTimer *m_later;
    QSet<QString> m_collapsed; ///< workloads that the user has closed
    bool m_choseCard = false;  ///< rather than a lineage, the last time
    bool m_following = false;  ///< the tree follows the selection, and must not change it
};

} // namespace klineage::ui
