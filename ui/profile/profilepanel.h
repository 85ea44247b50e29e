// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QStackedWidget;
class QTabBar;
class QTableView;

namespace klineage::ui {

class ProfileModel;
class SamplesPlot;
class Selection;
class WorkspaceModel;

/// What changed between the two sides of the selected step: metrics by size of change, and the raw samples behind the
/// latency. Follows Selection; the left side is the pinned baseline or the row's parent.
class ProfilePanel : public QWidget
{
    Q_OBJECT

public:
    ProfilePanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);

    [[nodiscard]] ProfileModel *model() const { return m_model; }

private:
    void refresh();
    void showMessage(const QString &text);

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    ProfileModel *m_model;
    QTabBar *m_tabs;
    QLabel *m_caption;
    QStackedWidget *m_stack;
    QTableView *m_table;
    SamplesPlot *m_samples;
    QLabel *m_message;
};

} // namespace klineage::ui
