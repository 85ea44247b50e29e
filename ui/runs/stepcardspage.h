// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/stepcards.h"

#include <QAbstractTableModel>
#include <QWidget>

class QLabel;
class QPlainTextEdit;
class QPushButton;
class QStackedWidget;
class QTableView;

namespace klineage::ui {

class WorkspaceModel;

/// The cards of a step, a row each.
class StepCardsModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Column { ShownColumn, CardColumn, RevisionColumn, WhyColumn, ColumnCount };

    /// workspace is not owned, and may be nullptr: nothing is then said of the library as it is now.
    explicit StepCardsModel(const WorkspaceModel *workspace, QObject *parent = nullptr);

    void setCards(std::vector<StepCard> cards);
    [[nodiscard]] const StepCard &card(int row) const { return m_cards[static_cast<std::size_t>(row)]; }
    [[nodiscard]] bool isInLibrary(int row) const;
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    [[nodiscard]] QString text(const StepCard &card, int column) const;
    [[nodiscard]] QString revisionText(const StepCard &card) const;

    const WorkspaceModel *m_workspace;
    std::vector<StepCard> m_cards;
};

/// Which cards the question of a step has, why each of them came, and which nearly did and what blocked them; beside it the text of the one
/// that is selected, as the run took it.
class StepCardsPage : public QWidget
{
    Q_OBJECT

public:
    explicit StepCardsPage(const WorkspaceModel *workspace, QWidget *parent = nullptr);

    void setCards(const StepCards &cards);
    [[nodiscard]] QTableView *table() const { return m_table; }
    [[nodiscard]] StepCardsModel *model() const { return m_model; }
    [[nodiscard]] QString summary() const;
    [[nodiscard]] QPlainTextEdit *detail() const { return m_detail; }

signals:
    void cardRequested(const QString &name); ///< of one that the library has

private:
    void showDetail();
    void openCard();

    StepCardsModel *m_model;
    QTableView *m_table;
    QPlainTextEdit *m_detail;
    QLabel *m_summary;
    QLabel *m_message;
    QPushButton *m_open;
    QStackedWidget *m_stack;
};

} // namespace klineage::ui
