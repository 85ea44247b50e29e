// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <QWidget>

class QLabel;
class QStackedWidget;
class QTabBar;
class QTableView;
class QTextBrowser;

namespace klineage::ui {

class ChangeTextDelegate;
class ChipLabel;
class ProfileModel;
class SamplesPlot;
class Selection;
class WorkspaceModel;

/// What changed between the two sides of the selected step: metrics by size of change, what bounds the right side and what the
/// micro-profiling tools found in it, and the raw samples behind the latency. Follows Selection; the left side is the pinned
/// baseline or the row's parent.
class ProfilePanel : public QWidget
{
    Q_OBJECT

public:
    ProfilePanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);

    [[nodiscard]] ProfileModel *model() const { return m_model; }

protected:
    void changeEvent(QEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    void refresh();
    void makeRoom();
    void fitColumns();
    void showMessage(const QString &text);
    void showFindings(const gate::Trial &trial);
    void showFailure(const gate::Verdict &verdict);

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    ProfileModel *m_model;
    QTabBar *m_tabs;
    ChipLabel *m_bound;
    QLabel *m_caption;
    QString m_captionText; ///< whole
    QStackedWidget *m_stack;
    QTableView *m_table;
    ChangeTextDelegate *m_change;
    SamplesPlot *m_samples;
    QTextBrowser *m_findings;
    QLabel *m_failure;
    QLabel *m_message;
};

} // namespace klineage::ui
