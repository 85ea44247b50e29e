// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/experimententry.h"
#include "ui/experiments/policycurves.h"

#include <QWidget>

class QAction;
class QComboBox;
class QLabel;
class QMenu;
class QPushButton;
class QSplitter;
class QStackedWidget;
class QTableView;

namespace klineage::ui {

class ExperimentPlot;
class ExperimentStore;
class PolicyTableModel;
class RunTableModel;
class WorkspaceModel;

/// An experiment of the workspace: what each policy came to on each root, running best against dollars, and a line a run.
class ExperimentsPanel : public QWidget
{
    Q_OBJECT

public:
    explicit ExperimentsPanel(WorkspaceModel *workspace, QWidget *parent = nullptr);

    [[nodiscard]] ExperimentStore *store() const { return m_store; }
    [[nodiscard]] ExperimentPlot *plot() const { return m_plot; }
    [[nodiscard]] QString contrasts() const; ///< the arms against each other; empty without goals
    [[nodiscard]] QTableView *policies() const { return m_policies; }
    [[nodiscard]] QTableView *runs() const { return m_runs; }
    [[nodiscard]] QString summary() const; ///< the line in the header
    [[nodiscard]] bool isEmpty() const;
    /// Nothing is being read for what is shown: what a screenshot waits for.
    [[nodiscard]] bool isUpToDate() const;

    /// Another experiment by name; one that is not there yet is shown when it is.
    void setExperiment(const QString &name);
    /// One root; empty: all of them.
    void setRoot(const QString &root);
    /// The run stands out in the plot and is the current line of the table.
    void setRun(const QString &id);

signals:
    void message(const QString &text);
    void folderOpened(); ///< or closed again
    /// A run was opened (double-click, Return): its folder's folder and its id.
    void runActivated(const QString &runsDirectory, const QString &id);

protected:
    void showEvent(QShowEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    // experimentspanellayout.cpp
    void buildActions();
    void buildViews();
    QWidget *makeBar();
    QAction *addPanelAction(const QString &name, const QString &text, const QKeySequence &key,
                            const std::function<void()> &act);

    void connectViews();
    void refresh();
    void showLists();
    void showExperiment();
    void arrange();
    void showSummary();
    void fitColumns();
    void fitSpread();
    void openRun(const QString &id);
    void openFolder();
    void exportPlot();
    void exportText(const QString &what, const std::function<QString()> &csv);
    void copyText(const QString &what, const QString &csv);
    [[nodiscard]] QString emptyText() const;

    ExperimentStore *m_store;
    PolicyTableModel *m_policyModel;
    RunTableModel *m_runModel;
    ExperimentEntryPtr m_shown; ///< what the tables and the plot show
    QString m_shownRoot;
    QString m_root;
    QString m_summaryText; ///< whole
    QComboBox *m_experiments;
    QComboBox *m_roots;
    QLabel *m_summary;
    QLabel *m_empty;
    QWidget *m_emptyPage = nullptr;
    QPushButton *m_openButton = nullptr; ///< below what the empty page says
    QLabel *m_contrasts;                 ///< above the tables, of an experiment with goals
    QStackedWidget *m_stack;
    QSplitter *m_across; ///< tables and plot; one above the other where it is narrow
    QSplitter *m_down;   ///< the two tables
    QTableView *m_policies;
    QTableView *m_runs;
    ExperimentPlot *m_plot;
    QMenu *m_exportMenu;
    QAction *m_refresh = nullptr;
    QAction *m_open = nullptr;
    QAction *m_close = nullptr;
    QAction *m_logarithmic = nullptr;
    bool m_filling = false; ///< the lists are being filled: nobody chose anything
};

} // namespace klineage::ui
