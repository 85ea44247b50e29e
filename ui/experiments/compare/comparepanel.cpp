// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/compare/comparepanel.h"

#include "core/files/atomicfile.h"
#include "ui/experiments/compare/columnpicker.h"
#include "ui/experiments/compare/comparestore.h"
#include "ui/style/choosefile.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QScopedValueRollback>
#include <QScrollBar>
#include <QSettings>
#include <QStackedWidget>
#include <QStandardPaths>
#include <QTableView>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int widestColumn = 240;
constexpr int mostKeptFolds = 500;

QString compareSettingsFile()
{
    return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)
           + QStringLiteral("/klineage/compare.ini");
}

} // namespace

ComparePanel::ComparePanel(RunStore *store, QWidget *parent)
    : QWidget(parent)
    , m_store(new CompareStore(store, this))
    , m_model(new CompareModel(this))
    , m_stack(new QStackedWidget)
    , m_empty(new QLabel)
    , m_filter(new QLineEdit)
    , m_group(new QComboBox)
    , m_summary(new QLabel)
    , m_problem(new QLabel)
{
    buildActions();
    layOut();
    load();
    connectViews();
    refresh();
}

ComparePanel::~ComparePanel() = default;

void ComparePanel::connectViews()
{
    connect(m_store, &CompareStore::changed, this, &ComparePanel::refresh);
    connect(m_model, &CompareModel::viewChanged, this, [this] {
        showState();
        keep();
    });
    connect(m_filter, &QLineEdit::textChanged, this, [this](const QString &text) {
        if (!m_quiet)
            change([&](CompareView &view) { view.filter = text; });
    });
    connect(m_filter, &QLineEdit::returnPressed, m_table, [this] { m_table->setFocus(); });
    connect(m_group, &QComboBox::activated, this, [this](int index) {
        change([&](CompareView &view) {
            view.group = m_group->itemData(index).toString();
            view.folded.clear();
        });
    });
    connect(m_table, &QTableView::activated, this, &ComparePanel::openCurrent);
    connect(m_table->horizontalHeader(), &QHeaderView::sectionMoved, this, [this] {
        // Not while the header is still in the move.
        QMetaObject::invokeMethod(this, &ComparePanel::takeColumnOrder, Qt::QueuedConnection);
    });
}

QString ComparePanel::summary() const
{
    return m_summary->text();
}

bool ComparePanel::isUpToDate() const
{
    return !m_store->isReading();
}

void ComparePanel::setView(const CompareView &view)
{
    change([&](CompareView &changed) { changed = view; });
}

/// The runs as they are now; what is looked at stays.
void ComparePanel::refresh()
{
    const QString key = m_table->currentIndex().data(CompareModel::KeyRole).toString();
    const int column = m_table->currentIndex().column();
    const int place = m_table->verticalScrollBar()->value();
    m_model->setRuns(m_store->runs());
    fillGroups();
    showState();
    if (const int row = m_model->rowOf(key); row >= 0)
        m_table->setCurrentIndex(m_model->index(row, std::max(0, column)));
    m_table->verticalScrollBar()->setValue(place);
    m_stack->setCurrentWidget(m_model->runs().empty() ? m_emptyPage : m_table);
    m_openButton->setVisible(!m_store->isReading());
    m_empty->setText(
        m_store->isReading()
            ? tr("Reading the runs…")
            : tr("No run is recorded yet. The panel Runs starts one, and klineage-cli experiment run NAME "
                 "those of an experiment; here they stand beside each other.\nOr open the folder of an "
                 "experiment that is recorded elsewhere: it is remembered with this workspace."));
}

/// Another view of the same runs: the current run, and with it the column, stay.
void ComparePanel::change(const std::function<void(CompareView &)> &change)
{
    const QString key = m_table->currentIndex().data(CompareModel::KeyRole).toString();
    const QString column =
        m_table->currentIndex().isValid() ? m_model->column(m_table->currentIndex().column()).id : QString();
    const int before = m_table->currentIndex().row();
    CompareView view = m_model->view();
    change(view);
    m_model->setView(view);
    showState();
    // A run that the view no longer has leaves its place to the one that took it.
    int row = m_model->rowOf(key);
    if (row < 0 && !key.isEmpty())
        row = std::min(before, m_model->rowCount() - 1);
    if (row >= 0) {
        const QModelIndex index = m_model->index(row, std::max(0, m_model->columnOf(column)));
        m_table->setCurrentIndex(index);
        m_table->scrollTo(index);
    }
    keep();
}

void ComparePanel::showState()
{
    const QScopedValueRollback<bool> quiet(m_quiet, true);
    const CompareView &view = m_model->view();
    if (m_filter->text() != view.filter)
        m_filter->setText(view.filter);
    m_group->setCurrentIndex(std::max(0, m_group->findData(view.group)));
    m_differ->setChecked(view.onlyDifferent);
    m_problem->setText(m_model->filterProblem());
    m_problem->setVisible(!m_problem->text().isEmpty());
    const int all = static_cast<int>(m_model->runs().size());
    m_summary->setText(tr("%1 of %2 runs · %3")
                           .arg(m_model->shownRuns())
                           .arg(all)
                           .arg(formatDollars(m_model->shownDollars())));
    m_export->setEnabled(m_model->shownRuns() > 0);
    QHeaderView *header = m_table->horizontalHeader();
    const int sorted = m_model->columnOf(view.sort);
    header->setSortIndicatorShown(sorted >= 0);
    if (sorted >= 0)
        header->setSortIndicator(sorted, view.descending ? Qt::DescendingOrder : Qt::AscendingOrder);
    QStringList shown;
    for (int i = 0; i < m_model->columnCount(); ++i)
        shown << m_model->column(i).id;
    if (shown == m_fitted || m_model->rowCount() == 0)
        return; // a width that a person chose stays
    m_fitted = shown;
    m_table->resizeColumnsToContents();
    for (int i = 0; i < m_model->columnCount(); ++i)
        m_table->setColumnWidth(i, std::min(m_table->columnWidth(i), widestColumn));
}

/// What runs can be grouped by: texts that some of them share.
void ComparePanel::fillGroups()
{
    m_group->clear();
    m_group->addItem(tr("No groups"), QString());
    for (const CompareColumn &column : m_model->columns()) {
        if (!column.isNumber() && column.id != QLatin1String("run") && column.id != QLatin1String("created"))
            m_group->addItem(tr("By %1").arg(column.title.toLower()), column.id);
    }
}

void ComparePanel::sortByCurrent()
{
    const QModelIndex index = m_table->currentIndex();
    if (!index.isValid())
        return;
    const QString id = m_model->column(index.column()).id;
    const bool isNumber = m_model->column(index.column()).isNumber();
    change([&](CompareView &view) {
        // Most first, of texts the first of the alphabet; again: the other way round.
        view.descending = view.sort == id ? !view.descending : isNumber;
        view.sort = id;
    });
}

void ComparePanel::groupByCurrent()
{
    const QModelIndex index = m_table->currentIndex();
    const QString id = index.isValid() ? m_model->column(index.column()).id : QString();
    if (id.isEmpty() || m_group->findData(id) < 0) {
        emit message(
            tr("Runs cannot be grouped by this column; choose one of texts that some of them share."));
        return;
    }
    change([&](CompareView &view) {
        view.group = view.group == id ? QString() : id;
        view.folded.clear();
    });
}

/// Only the runs with the value of the current cell, or only those without it.
void ComparePanel::filterByCurrent(const QString &comparison)
{
    const QModelIndex index = m_table->currentIndex();
    const ComparedRun *run = m_model->runAt(index.row());
    if (!run)
        return;
    const CompareColumn &column = m_model->column(index.column());
    const QString term = filterTerm(column.id, comparison, exactValue(column.value(*run)));
    change([&](CompareView &view) {
        view.filter = view.filter.trimmed().isEmpty() ? term : view.filter.trimmed() + u' ' + term;
    });
}

void ComparePanel::foldCurrent()
{
    QModelIndex index = m_table->currentIndex();
    while (index.isValid() && !index.data(CompareModel::GroupRole).toBool())
        index = index.siblingAtRow(index.row() - 1);
    if (!index.isValid())
        return;
    m_table->setCurrentIndex(index);
    const QString value = index.data(CompareModel::KeyRole).toString().section(u':', 1);
    change([&](CompareView &view) {
        if (!view.folded.remove(value))
            view.folded.insert(value);
    });
}

void ComparePanel::moveColumn(int by)
{
    const QModelIndex index = m_table->currentIndex();
    const int to = index.column() + by;
    if (!index.isValid() || to < 0 || to >= m_model->columnCount())
        return;
    const QString id = m_model->column(index.column()).id;
    const QString beside = m_model->column(to).id;
    change([&](CompareView &view) {
        view.columns.removeAll(id);
        view.columns.insert(view.columns.indexOf(beside) + (by > 0 ? 1 : 0), id);
    });
}

/// A header that was dragged: the model has the order, the header none of its own.
void ComparePanel::takeColumnOrder()
{
    QHeaderView *header = m_table->horizontalHeader();
    QStringList order;
    for (int visual = 0; visual < header->count(); ++visual)
        order << m_model->column(header->logicalIndex(visual)).id;
    const QSignalBlocker blocker(header);
    for (int logical = 0; logical < header->count(); ++logical)
        header->moveSection(header->visualIndex(logical), logical);
    change([&](CompareView &view) {
        for (const QString &id : std::as_const(view.columns)) {
            if (!order.contains(id))
                order << id; // of which no run has a value, for now
        }
        view.columns = order;
    });
}

void ComparePanel::pickColumns()
{
    ColumnPicker picker(m_model->columns(), m_model->view().columns, {m_moveUp, m_moveDown}, this);
    if (picker.exec() == QDialog::Accepted && !picker.chosen().isEmpty())
        change([&](CompareView &view) { view.columns = picker.chosen(); });
}

void ComparePanel::openCurrent()
{
    const ComparedRun *run = m_model->runAt(m_table->currentIndex().row());
    if (run)
        emit runActivated(run->runsDirectory(), run->run->id());
    else
        foldCurrent();
}

void ComparePanel::exportCsv()
{
    const QString fileName = chooseFileToSave(this, tr("Export the runs that are shown"),
                                              QStringLiteral("runs"), tr("CSV table (*.csv)"));
    if (fileName.isEmpty())
        return;
    const Status written = files::writeFileAtomic(fileName.toStdString(), m_model->csv().toStdString());
    emit message(written ? tr("Exported %1.").arg(fileName)
                         : QString::fromStdString(written.error().message));
}

void ComparePanel::copyCsv()
{
    QApplication::clipboard()->setText(m_model->csv());
    emit message(tr("Copied %1 runs as CSV.").arg(m_model->shownRuns()));
}

void ComparePanel::load()
{
    const QSettings settings(compareSettingsFile(), QSettings::IniFormat);
    CompareView view;
    view.columns = settings.value(QStringLiteral("columns"), view.columns).toStringList();
    view.group = settings.value(QStringLiteral("group")).toString();
    view.sort = settings.value(QStringLiteral("sort"), view.sort).toString();
    view.descending = settings.value(QStringLiteral("descending"), view.descending).toBool();
    view.filter = settings.value(QStringLiteral("filter")).toString();
    view.onlyDifferent = settings.value(QStringLiteral("onlyDifferent")).toBool();
    const QStringList folded = settings.value(QStringLiteral("folded")).toStringList();
    view.folded = QSet<QString>(folded.begin(), folded.end());
    m_model->setView(view);
}

void ComparePanel::keep() const
{
    QSettings settings(compareSettingsFile(), QSettings::IniFormat);
    const CompareView &view = m_model->view();
    settings.setValue(QStringLiteral("columns"), view.columns);
    settings.setValue(QStringLiteral("group"), view.group);
    settings.setValue(QStringLiteral("sort"), view.sort);
    settings.setValue(QStringLiteral("descending"), view.descending);
    settings.setValue(QStringLiteral("filter"), view.filter);
    settings.setValue(QStringLiteral("onlyDifferent"), view.onlyDifferent);
    settings.setValue(QStringLiteral("folded"), QStringList(view.folded.values()).mid(0, mostKeptFolds));
}

/// Nothing is read before somebody wants to see it.
void ComparePanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    m_store->refresh();
}

} // namespace klineage::ui
