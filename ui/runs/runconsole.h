// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QStackedWidget;
class QTableView;

namespace klineage::ui {

class GateController;
class JobModel;
class Selection;

/// The trials of this session: progress with a stop button, verdicts, and the whole text of the selected one.
/// Activating a recorded trial selects its row in the lineage.
class RunConsole : public QWidget
{
    Q_OBJECT

public:
    RunConsole(GateController *controller, Selection *selection, QWidget *parent = nullptr);

    [[nodiscard]] JobModel *model() const { return m_model; }

private:
    void buildProgressRow();
    void showDetail();

    GateController *m_controller;
    Selection *m_selection;
    JobModel *m_model;
    QStackedWidget *m_stack;
    QTableView *m_table;
    QPlainTextEdit *m_detail;
    QWidget *m_progressRow;
    QProgressBar *m_progress;
    QLabel *m_progressText;
    QPushButton *m_stop;
};

} // namespace klineage::ui
