// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/experimentspanel.h"

#include "core/files/atomicfile.h"
#include "ui/experiments/experimentplot.h"
#include "ui/experiments/experimentstore.h"
#include "ui/experiments/policytablemodel.h"
#include "ui/experiments/runtablemodel.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/plotexport.h"
#include "ui/runs/runentry.h"
#include "ui/style/choosefile.h"
#include "ui/style/fonts.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QEvent>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QScopedValueRollback>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>

#include <algorithm>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr int leastSpread = 80;
constexpr int sideBySideWidth = 1080; // below it the plot stands under the tables

const char *const exampleFile = R"(title = "Cards against none"
roots = ["softmax/pocl/K00", "sgemm/pocl/K00"]
policies = ["klineage", "generated-only"]
seeds = [1, 2, 3]
budget_dollars = 10.0      # a run
max_steps = 0              # no limit
provider = "anthropic"
model = "…")";

/// What one looks at first, in one line.
QString summaryOf(const ExperimentEntry &entry)
{
    const run::Experiment &file = entry.experiment;
    const auto runs = static_cast<int>(entry.results.cells.size());
    QStringList parts;
    if (!file.title.empty())
        parts << QString::fromStdString(file.title);
    parts << (entry.finished() == runs
                  ? ExperimentsPanel::tr("%1 runs, all over").arg(runs)
                  : ExperimentsPanel::tr("%1 of %2 runs over").arg(entry.finished()).arg(runs));
    if (entry.isRunning())
        parts << ExperimentsPanel::tr("▸ running");
    parts << ExperimentsPanel::tr("%1 spent").arg(formatDollars(entry.dollars()));
    parts << ExperimentsPanel::tr("budget $%1 a run").arg(file.budgetDollars, 0, 'g', 6);
    parts << QString::fromStdString(file.model.empty() ? file.provider : file.provider + " " + file.model);
    return parts.join(QStringLiteral(" · "));
}

} // namespace

ExperimentsPanel::ExperimentsPanel(WorkspaceModel *workspace, QWidget *parent)
    : QWidget(parent)
    , m_store(new ExperimentStore(workspace, this))
    , m_policyModel(new PolicyTableModel(this))
    , m_runModel(new RunTableModel(this))
    , m_experiments(new QComboBox)
    , m_roots(new QComboBox)
    , m_summary(new QLabel)
    , m_empty(new QLabel)
    , m_contrasts(new QLabel)
    , m_stack(new QStackedWidget)
    , m_plot(new ExperimentPlot)
    , m_exportMenu(new QMenu(this))
{
    buildActions();
    buildViews();
    connectViews();
    refresh();
}

void ExperimentsPanel::connectViews()
{
    connect(m_store, &ExperimentStore::changed, this, &ExperimentsPanel::refresh);
    connect(m_store, &ExperimentStore::readingChanged, this, [this] {
        if (m_store->experiments().empty())
            refresh();
    });
    connect(m_experiments, &QComboBox::currentIndexChanged, this, [this](int index) {
        if (!m_filling && index >= 0)
            setExperiment(m_experiments->itemText(index));
    });
    connect(m_roots, &QComboBox::currentIndexChanged, this, [this](int index) {
        if (!m_filling && index >= 0)
            setRoot(m_roots->itemData(index).toString());
    });
    connect(m_runs->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &index) {
                m_plot->setHighlighted(index.data(RunTableModel::IdRole).toString());
            });
    connect(m_runs, &QTableView::activated, this,
            [this](const QModelIndex &index) { openRun(index.data(RunTableModel::IdRole).toString()); });
    connect(m_policies, &QTableView::activated, this, [this](const QModelIndex &index) {
        const QString root = QString::fromStdString(m_policyModel->row(index.row()).root);
        setRoot(root == m_root ? QString() : root);
    });
    connect(m_plot, &ExperimentPlot::runClicked, this, &ExperimentsPanel::setRun);
    connect(m_plot, &ExperimentPlot::runActivated, this, &ExperimentsPanel::openRun);
}

QString ExperimentsPanel::summary() const
{
    return m_summaryText;
}

QString ExperimentsPanel::contrasts() const
{
    return m_contrasts->text();
}

bool ExperimentsPanel::isEmpty() const
{
    return m_stack->currentWidget() == m_emptyPage;
}

bool ExperimentsPanel::isUpToDate() const
{
    return !m_store->isReading();
}

void ExperimentsPanel::setExperiment(const QString &name)
{
    m_root.clear();
    m_store->setCurrent(name);
}

void ExperimentsPanel::setRoot(const QString &root)
{
    if (root == m_root)
        return;
    m_root = root;
    refresh();
}

void ExperimentsPanel::setRun(const QString &id)
{
    const int row = m_runModel->rowOf(id);
    if (row < 0)
        return;
    m_runs->selectRow(row);
    m_runs->scrollTo(m_runModel->index(row, 0));
}

void ExperimentsPanel::refresh()
{
    const ExperimentEntryPtr entry = m_store->current();
    showLists();
    const bool isShown = entry && entry->problem.isEmpty();
    for (QAction *action : m_exportMenu->actions())
        action->setEnabled(isShown);
    m_close->setEnabled(m_store->isCurrentOpened());
    m_roots->setVisible(isShown && entry->experiment.roots.size() > 1);
    m_logarithmic->setEnabled(isShown);
    m_summaryText = isShown ? summaryOf(*entry) : QString();
    showSummary();
    if (!isShown) {
        m_shown.reset();
        m_policyModel->show(nullptr, {});
        m_runModel->show(nullptr, {});
        m_plot->show({}, {});
        m_empty->setText(
            entry ? entry->problem.toHtmlEscaped().replace(QLatin1Char('\n'), QLatin1String("<br>"))
                  : emptyText());
        m_openButton->setVisible(!entry && !m_store->directory().isEmpty());
        m_stack->setCurrentWidget(m_emptyPage);
        return;
    }
    showExperiment();
    m_stack->setCurrentIndex(0);
}

/// The two choices: their lists follow the files, what is chosen stays.
void ExperimentsPanel::showLists()
{
    const QScopedValueRollback<bool> filling(m_filling, true);
    const ExperimentEntryPtr entry = m_store->current();
    m_experiments->clear();
    for (const ExperimentEntryPtr &one : m_store->experiments())
        m_experiments->addItem(one->name());
    m_experiments->setCurrentText(entry ? entry->name() : QString());
    m_experiments->setVisible(!m_store->experiments().empty());
    m_roots->clear();
    m_roots->addItem(tr("All roots"), QString());
    if (entry) {
        for (const std::string &root : entry->experiment.roots)
            m_roots->addItem(QString::fromStdString(root), QString::fromStdString(root));
    }
    const int root = m_roots->findData(m_root);
    if (root < 0)
        m_root.clear();
    m_roots->setCurrentIndex(std::max(root, 0));
}

void ExperimentsPanel::showExperiment()
{
    const ExperimentEntryPtr entry = m_store->current();
    const bool isAnother = !m_shown || m_shown->name() != entry->name() || m_shownRoot != m_root
                           || m_shown->results.cells.size() != entry->results.cells.size();
    if (m_shown == entry && !isAnother)
        return;
    const QString run = isAnother ? QString() : m_runs->currentIndex().data(RunTableModel::IdRole).toString();
    m_shown = entry;
    m_shownRoot = m_root;
    m_policyModel->show(entry, m_root);
    m_runModel->show(entry, m_root);
    const bool oneRoot = !m_root.isEmpty() || entry->experiment.roots.size() == 1;
    m_policies->setColumnHidden(PolicyTableModel::RootColumn, oneRoot);
    m_runs->setColumnHidden(RunTableModel::RootColumn, oneRoot);
    m_policies->setColumnHidden(PolicyTableModel::AgainstColumn, entry->experiment.policies.size() < 2);
    const bool hasGoals = !entry->experiment.goals.empty();
    m_policies->setColumnHidden(PolicyTableModel::GoalColumn, !hasGoals);
    m_policies->setColumnHidden(PolicyTableModel::GainColumn, !hasGoals);
    m_contrasts->setText(contrastText(*entry));
    m_contrasts->setVisible(!m_contrasts->text().isEmpty());
    const auto &rows = entry->results.policies;
    m_policies->setColumnHidden(PolicyTableModel::UnfinishedColumn,
                                std::all_of(rows.begin(), rows.end(), [](const run::PolicyResult &row) {
                                    return row.unfinished == 0;
                                }));
    if (isAnother)
        m_plot->setHighlighted({});
    m_plot->show(curvesOf(entry->experiment, entry->results), m_root);
    if (!run.isEmpty())
        setRun(run);
    if (isAnother)
        arrange();
}

void ExperimentsPanel::showSummary()
{
    m_summary->setText(
        m_summary->fontMetrics().elidedText(m_summaryText, Qt::ElideRight, m_summary->width()));
    m_summary->setToolTip(m_summaryText);
}

void ExperimentsPanel::fitColumns()
{
    m_runs->resizeColumnsToContents();
    QHeaderView *header = m_policies->horizontalHeader();
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    header->setSectionResizeMode(PolicyTableModel::SpreadColumn, QHeaderView::Stretch);
    fitSpread();
    // All policies at once where that leaves the runs some room.
    const int wanted = header->sizeHint().height() + m_policies->verticalHeader()->length() + 14;
    const int height = m_down->height();
    const int given = std::min(wanted, height * 6 / 10);
    m_down->setSizes({given, height - given});
}

/// A scale that is too narrow to tell speedups apart is left out.
void ExperimentsPanel::fitSpread()
{
    int rest = m_policies->viewport()->width();
    for (int column = 0; column < PolicyTableModel::ColumnCount; ++column) {
        if (column != PolicyTableModel::SpreadColumn)
            rest -= m_policies->columnWidth(column); // 0 while hidden
    }
    m_policies->setColumnHidden(PolicyTableModel::SpreadColumn, rest < leastSpread);
}

void ExperimentsPanel::openRun(const QString &id)
{
    const int row = m_runModel->rowOf(id);
    if (!m_shown || row < 0)
        return;
    const run::CellResult &cell = m_runModel->row(row);
    if (cell.state == "missing" || cell.state == "unreadable")
        emit message(cell.state == "missing"
                         ? tr("The run %1 has not begun: klineage-cli experiment run %2 runs it.")
                               .arg(id, m_shown->name())
                         : QString::fromStdString(cell.ending.reason));
    else
        emit runActivated(m_shown->runsDirectory(), id);
}

/// Recorded ones are looked for where a source tree has them.
void ExperimentsPanel::openFolder()
{
    const QDir workspace(QFileInfo(m_store->directory()).path());
    const QString recorded = workspace.filePath(QStringLiteral("tests/data/experiments"));
    const QString folder = chooseFolder(this, tr("Open a folder of an experiment"),
                                        QFileInfo(recorded).isDir() ? recorded : workspace.path());
    if (folder.isEmpty())
        return;
    if (const QString problem = m_store->openFolder(folder); !problem.isEmpty())
        emit message(problem);
    else
        emit folderOpened();
}

void ExperimentsPanel::exportPlot()
{
    if (!m_shown)
        return;
    const QString name = QStringLiteral("%1-%2")
                             .arg(m_shown->name(), m_root.isEmpty() ? QStringLiteral("plot") : m_root)
                             .replace(QLatin1Char('/'), QLatin1Char('-'));
    const QString fileName = chooseFileToSave(
        this, tr("Export the plot"), name, tr("SVG drawing (*.svg);;PDF page (*.pdf);;PNG picture (*.png)"));
    if (fileName.isEmpty())
        return;
    const QString problem = savePlot(*m_plot->plot(), fileName);
    emit message(problem.isEmpty() ? tr("Exported %1.").arg(fileName) : problem);
}

void ExperimentsPanel::exportText(const QString &what, const std::function<QString()> &csv)
{
    if (!m_shown)
        return;
    const QString fileName =
        chooseFileToSave(this, tr("Export a table"), QStringLiteral("%1-%2").arg(m_shown->name(), what),
                         tr("CSV table (*.csv)"));
    if (fileName.isEmpty())
        return;
    const Status written = files::writeFileAtomic(fileName.toStdString(), csv().toStdString());
    emit message(written ? tr("Exported %1.").arg(fileName)
                         : QString::fromStdString(written.error().message));
}

void ExperimentsPanel::copyText(const QString &what, const QString &csv)
{
    if (csv.isEmpty())
        return;
    QApplication::clipboard()->setText(csv);
    emit message(tr("Copied the table of %1 as CSV.").arg(what));
}

QString ExperimentsPanel::emptyText() const
{
    if (m_store->directory().isEmpty())
        return {};
    if (m_store->isReading())
        return tr("Reading the experiments…");
    return tr("<p>An experiment lets policies start from the same roots, with the same author and budget:"
              "<br>each root × policy × seed is a run. This workspace has none yet.</p>"
              "<p>Describe one in <b>experiments/<i>name</i>/experiment.toml</b>:</p>"
              "<table align='center' cellpadding='10'><tr><td align='left'><pre style=\"font-family:'%1'\">%2</pre></td></tr></table>"
              "<p>and run it with <b>klineage-cli experiment run <i>name</i></b>."
              "<br>Stopped, it goes on when it is run again; it can be watched here as it grows.</p>"
              "<p>Or look at one that is recorded elsewhere: its folder is remembered with this workspace.</p>")
        .arg(codeFont().family(), QString::fromUtf8(exampleFile).toHtmlEscaped());
}

/// Nothing is read before somebody wants to see it.
void ExperimentsPanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    m_store->refresh();
}

void ExperimentsPanel::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    const Qt::Orientation wanted = width() >= sideBySideWidth ? Qt::Horizontal : Qt::Vertical;
    if (wanted != m_across->orientation())
        arrange();
}

bool ExperimentsPanel::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_summary && event->type() == QEvent::Resize)
        showSummary();
    // Afterwards: the table has yet to lay out its own columns.
    if (watched == m_policies->viewport() && event->type() == QEvent::Resize)
        QMetaObject::invokeMethod(this, &ExperimentsPanel::fitSpread, Qt::QueuedConnection);
    return QWidget::eventFilter(watched, event);
}

/// Tables and plot side by side, or where that is too narrow the plot above the tables.
void ExperimentsPanel::arrange()
{
    const bool beside = width() >= sideBySideWidth;
    m_across->setOrientation(beside ? Qt::Horizontal : Qt::Vertical);
    m_across->insertWidget(beside ? 1 : 0, m_plot);
    if (beside)
        m_across->setSizes({width() * 58 / 100, width() * 42 / 100});
    else
        m_across->setSizes({height() * 52 / 100, height() * 48 / 100});
    fitColumns();
}

} // namespace klineage::ui
