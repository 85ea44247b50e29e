// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QStackedWidget;
class QTableView;

namespace klineage::ui {

class ProblemsModel;

/// The problems of the workspace and the window, or a sentence that there are none.
class ProblemsPanel : public QWidget
{
    Q_OBJECT

public:
    explicit ProblemsPanel(ProblemsModel *problems, QWidget *parent = nullptr);

private:
    void refresh();

    ProblemsModel *m_problems;
    QStackedWidget *m_stack;
    QTableView *m_table;
    QLabel *m_none;
};

} // namespace klineage::ui
