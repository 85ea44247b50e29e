// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/table/figurestack.h"

#include "ui/plots/table/plottableview.h"
#include "ui/style/keyedcommand.h"
#include "ui/style/plainwidgets.h"

#include <QAction>
#include <QLabel>
#include <QVBoxLayout>

#include <qcustomplot.h>

namespace klineage::ui {

FigureStack::FigureStack(QWidget *panel, QCustomPlot *plot, const QString &id, const Texts &texts)
    : m_plot(plot)
    , m_table(new PlotTableView)
    , m_message(makeMessageLabel())
    , m_fit(addKeyedCommand(m_plot, id + QStringLiteral(".fit"), texts.fit, QKeySequence(Qt::Key_F)))
    , m_tableAction(
          addKeyedCommand(this, id + QStringLiteral(".table"), texts.table, QKeySequence(Qt::Key_T)))
{
    addWidget(m_plot);
    addWidget(m_message);
    addWidget(m_table);
    auto *layout = new QVBoxLayout(panel);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(this);
    m_plot->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    m_plot->setFocusPolicy(Qt::StrongFocus);
    m_table->setAccessibleName(tr("%1, as a table").arg(m_plot->accessibleName()));
    m_tableAction->setCheckable(true);
    connect(m_tableAction, &QAction::triggered, this, [this] {
        if (currentWidget() != m_message)
            showFigure();
    });
    panel->setFocusProxy(this);
    setFocusProxy(m_plot);
}

void FigureStack::showFigure()
{
    turnTo(m_tableAction->isChecked() ? static_cast<QWidget *>(m_table) : m_plot);
}

void FigureStack::showMessage(const QString &text)
{
    m_message->setText(text);
    turnTo(m_message);
}

/// The focus stays in the panel.
void FigureStack::turnTo(QWidget *page)
{
    QWidget *before = currentWidget();
    const bool hadFocus = before->hasFocus();
    setFocusProxy(page == m_message ? static_cast<QWidget *>(m_plot) : page);
    if (page == before)
        return;
    setCurrentWidget(page);
    if (hadFocus && page != m_message)
        page->setFocus(Qt::OtherFocusReason);
}

} // namespace klineage::ui
