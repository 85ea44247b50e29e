// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/why/whystep.h"
#include "ui/highlight/jobslot.h"

#include <QList>
#include <QWidget>

class QAction;
class QBoxLayout;
class QLabel;
class QStackedWidget;
class QTabBar;
class QTableView;
class QTextBrowser;
class QTimer;

namespace klineage::ui {

class ChangeTextDelegate;
class ChipLabel;
class ExplainPage;
class LaunchPage;
class ProfileModel;
class RooflinePlot;
class SamplesPlot;
class Selection;
class WorkspaceModel;

/// What changed between the two sides of the selected step: metrics by size of change, why that changed the time, the launch plans in
/// numbers, the lineage under the device's ceilings, what bounds the right side and what the micro-profiling tools found in it, and the
/// raw samples behind the latency. Follows Selection; the left side is the pinned baseline or the row's parent.
class ProfilePanel : public QWidget
{
    Q_OBJECT

public:
    ProfilePanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);

    [[nodiscard]] ProfileModel *model() const { return m_model; }
    [[nodiscard]] ExplainPage *explanation() const { return m_explanation; }
    [[nodiscard]] LaunchPage *launches() const { return m_launches; }
    [[nodiscard]] RooflinePlot *roofline() const { return m_roofline; }
    /// Selects a metric's row of the table and shows it; false when the step has no such row.
    bool showMetric(const QString &name);
    /// Whether what is shown belongs to the selection: sources are compared in the background.
    [[nodiscard]] bool isUpToDate() const { return m_answeredKey == m_askedKey; }

    /// The commands whose keys act in the whole window: one a view.
    [[nodiscard]] QList<QAction *> commands() const { return m_commands; }

signals:
    /// A command wants the panel to be seen; the view is chosen already.
    void wanted();
    /// A line of the sources of the step: 0 left, 1 right; 1-based.
    void sourceLineWanted(int side, int line);

protected:
    void changeEvent(QEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    enum Page { TablePage, ExplainPlace, LaunchPlace, RooflinePlace, FindingsPage, SamplesPage, MessagePage };

    [[nodiscard]] static QString sideName(const lineage::RowRef &row);
    void makeViews(); ///< all but the last of the pages, in the order of the tabs
    void addCommand(const QString &id, const QString &text, const QKeySequence &key, Page page);
    void refresh();
    void ask(const lineage::Lineage &lineage);
    void takeAnswer(const why::Answer &answer);
    void makeRoom();
    void fitColumns();
    void showMessage(const QString &text);
    void fillView(const lineage::Lineage &lineage, const gate::Trial &trial);
    void showFailure(const gate::Verdict &verdict);

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    ProfileModel *m_model;
    QBoxLayout *m_header;
    QTabBar *m_tabs;
    ChipLabel *m_bound;
    QLabel *m_caption;
    QString m_captionText; ///< whole
    QStackedWidget *m_stack;
    QTableView *m_table;
    ChangeTextDelegate *m_change;
    SamplesPlot *m_samples;
    QTextBrowser *m_findings;
    ExplainPage *m_explanation;
    LaunchPage *m_launches;
    RooflinePlot *m_roofline;
    QList<QAction *> m_commands;
    JobSlot m_asking;
    QTimer *m_patience;    ///< until it is said that sources are being compared
    QString m_askedKey;    ///< of what is to be explained; empty: nothing
    QString m_answeredKey; ///< of what is explained
    why::Answer m_answer;
    QString m_leftName;
    QString m_rightName;
    QLabel *m_failure;
    QLabel *m_message;
};

} // namespace klineage::ui
