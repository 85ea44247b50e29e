// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSet>
#include <QWidget>

class QLabel;
class QLineEdit;
class QStackedWidget;

namespace klineage::ui {

class FuzzyFilter;
class LibraryDelegate;
class LibraryModel;
class LibraryTree;
class Selection;
class Viewed;
class WorkspaceModel;

/// Workloads with their lineages, and the cards by state of review, under a live filter. Choosing a row sets the Selection, and
/// the row of what is selected elsewhere is shown. The window title of the panel says what is left to review.
class LibraryPanel : public QWidget
{
    Q_OBJECT

public:
    LibraryPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);

    [[nodiscard]] LibraryModel *model() const { return m_model; }
    /// Marks what was viewed. Not owned; outlives the panel.
    void setViewed(const Viewed *viewed);
    [[nodiscard]] QLineEdit *filterField() const { return m_filterField; }

    /// The next (+1) or previous (-1) card of what the filter shows; empty at the ends. A card that is in no row begins at the end.
    [[nodiscard]] QString neighbourCard(const QString &card, int by) const;
    /// Makes a card the current row and selects it, as choosing it does.
    void chooseCard(const QString &card);

signals:
    /// A person chose a card here, rather than a step that has one.
    void cardChosen(const QString &card);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void refresh();
    void applyFilter(const QString &pattern);
    void choose(const QModelIndex &proxyIndex);
    void showSelection();
    void showCard(const QString &card);
    void restoreExpansion();

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    LibraryModel *m_model;
    FuzzyFilter *m_filter;
    LibraryDelegate *m_delegate;
    QLineEdit *m_filterField;
    QStackedWidget *m_stack;
    LibraryTree *m_tree;
    QLabel *m_empty;
    QSet<QString> m_collapsed; ///< workloads that the user has closed
    bool m_following = false;  ///< the tree follows the selection, and must not change it
};

} // namespace klineage::ui
