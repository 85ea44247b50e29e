// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runconsole.h"

#include "ui/models/selection.h"
#include "ui/runs/jobmodel.h"
#include "ui/runs/verdicttext.h"
#include "ui/style/plainwidgets.h"

#include <QFontDatabase>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>

namespace klineage::ui {

RunConsole::RunConsole(GateController *controller, Selection *selection, QWidget *parent)
    : QWidget(parent)
    , m_controller(controller)
    , m_selection(selection)
    , m_model(new JobModel(controller, this))
    , m_stack(new QStackedWidget)
    , m_table(makePlainTable(m_model, tr("Trials of this session")))
    , m_detail(new QPlainTextEdit)
    , m_progressRow(new QWidget)
    , m_progress(new QProgressBar)
    , m_progressText(new QLabel)
    , m_stop(new QPushButton(tr("Stop")))
{
    auto *empty = makeMessageLabel(tr(
        "No trial yet. Open a state in the editor (double-click its row), change it, and press Ctrl+Enter: "
        "the gate compiles, checks and times it here."));

    m_table->horizontalHeader()->setStretchLastSection(true);

    m_detail->setReadOnly(true);
    m_detail->setAccessibleName(tr("Verdict"));
    m_detail->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_detail->setFrameShape(QFrame::NoFrame);

    auto *splitter = new QSplitter(Qt::Horizontal);
    splitter->addWidget(m_table);
    splitter->addWidget(m_detail);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 2);
    splitter->setChildrenCollapsible(false);

    m_stack->addWidget(empty);
    m_stack->addWidget(splitter);

    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    buildProgressRow();
    layout->addWidget(m_progressRow);
    layout->addWidget(m_stack);

    connect(m_model, &QAbstractItemModel::rowsInserted, this, [this] {
        m_stack->setCurrentIndex(1);
        m_table->selectRow(0);
        m_table->resizeColumnsToContents();
    });
    connect(m_model, &QAbstractItemModel::dataChanged, this, &RunConsole::showDetail);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            &RunConsole::showDetail);
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex &index) {
        const JobModel::Entry &entry = m_model->entries()[static_cast<std::size_t>(index.row())];
        if (!entry.recordedRow.isEmpty())
            m_selection->setLineage(entry.job.lineageKey, entry.recordedRow);
    });
}

void RunConsole::buildProgressRow()
{
    auto *row = new QHBoxLayout(m_progressRow);
    row->setContentsMargins(8, 4, 8, 4);
    m_progress->setTextVisible(false);
    m_progress->setFixedWidth(120);
    m_progress->setAccessibleName(tr("Progress of the running trial"));
    m_stop->setToolTip(tr("Kill the running trial at once (Shift+Esc)"));
    row->addWidget(m_progress);
    row->addWidget(m_progressText, 1);
    row->addWidget(m_stop);
    m_progressRow->hide();

    connect(m_stop, &QPushButton::clicked, m_controller, &GateController::stop);
    connect(m_controller, &GateController::started, this, [this](const GateJob &job) {
        m_progress->setRange(0, 0);
        m_progressText->setText(tr("Gating %1…").arg(job.candidateName));
        m_progressRow->show();
    });
    connect(m_controller, &GateController::progressed, this,
            [this](quint64, const gate::GateProgress &progress) {
                m_progress->setRange(0, progress.fraction < 0 ? 0 : 100);
                m_progress->setValue(static_cast<int>(progress.fraction * 100));
                m_progressText->setText(progressSentence(progress));
            });
    const auto finish = [this] {
        m_progressRow->hide();
        m_table->resizeColumnsToContents();
    };
    connect(m_controller, &GateController::finished, this, finish);
    connect(m_controller, &GateController::failed, this, finish);
    connect(m_controller, &GateController::stopped, this, finish);
}

void RunConsole::showDetail()
{
    const QModelIndex current = m_table->currentIndex();
    const QString text = current.isValid() ? current.data(JobModel::DetailRole).toString() : QString();
    if (m_detail->toPlainText() != text)
        m_detail->setPlainText(text);
}

} // namespace klineage::ui
