// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/compare/comparemodel.h"

#include <QWidget>

class QAction;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QStackedWidget;
class QTableView;

namespace klineage::ui {

class CompareStore;
class RunStore;

/// All recorded runs of the workspace beside each other, its own and those of its experiments: columns are picked, runs grouped, filtered
/// and sorted, and what one sees is taken out as CSV. How it is looked at is kept from one start to the next.
class ComparePanel : public QWidget
{
    Q_OBJECT

public:
    /// store is not owned. Nothing is read before the panel is shown.
    explicit ComparePanel(RunStore *store, QWidget *parent = nullptr);
    ~ComparePanel() override;

    [[nodiscard]] CompareStore *store() const { return m_store; }
    [[nodiscard]] CompareModel *model() const { return m_model; }
    [[nodiscard]] QTableView *table() const { return m_table; }
    [[nodiscard]] QLineEdit *filterField() const { return m_filter; }
    [[nodiscard]] QString summary() const;
    [[nodiscard]] bool isUpToDate() const;

    void setView(const CompareView &view);

signals:
    void message(const QString &text);
    void openExperimentRequested(); ///< a folder of one, from outside the workspace
    /// A run was opened (double-click, Return): its folder's folder and its id.
    void runActivated(const QString &runsDirectory, const QString &id);

protected:
    void showEvent(QShowEvent *event) override;

private:
    // comparepanellayout.cpp
    void buildActions();
    void layOut();
    QAction *addPanelAction(const char *name, const QString &text, const QKeySequence &key,
                            const std::function<void()> &act);

    void connectViews();
    void refresh();
    void change(const std::function<void(CompareView &)> &change);
    void showState();
    void fillGroups();
    void sortByCurrent();
    void groupByCurrent();
    void filterByCurrent(const QString &comparison);
    void foldCurrent();
    void moveColumn(int by);
    void takeColumnOrder();
    void pickColumns();
    void openCurrent();
    void exportCsv();
    void copyCsv();
    void load();
    void keep() const;

    CompareStore *m_store;
    CompareModel *m_model;
    QStackedWidget *m_stack;
    QTableView *m_table;
    QLabel *m_empty;
    QWidget *m_emptyPage = nullptr;
    QPushButton *m_openButton = nullptr; ///< below what the empty page says
    QLineEdit *m_filter;
    QComboBox *m_group;
    QLabel *m_summary;
    QLabel *m_problem;
    QAction *m_differ = nullptr;
    QAction *m_pick = nullptr;
    QAction *m_export = nullptr;
    QAction *m_moveUp = nullptr;   ///< of the column picker
    QAction *m_moveDown = nullptr; ///< of the column picker
    QStringList m_fitted;          ///< columns whose widths were fitted to what is in them
    bool m_quiet = false;          ///< the fields follow the view
};

} // namespace klineage::ui
