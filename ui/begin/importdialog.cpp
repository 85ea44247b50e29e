// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/importdialog.h"

#include "ui/begin/importform.h"
#include "ui/begin/importmodel.h"
#include "ui/style/fonts.h"
#include "ui/style/plainwidgets.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace klineage::ui {

using Kind = ImportRunner::Kind;

namespace {

QString titleOf(Kind kind)
{
    switch (kind) {
    case Kind::Cards:
        return ImportDialog::tr("Import cards");
    case Kind::Problems:
        return ImportDialog::tr("Import problems");
    case Kind::Archive:
        return ImportDialog::tr("Import a search's archive");
    case Kind::Operator:
        return ImportDialog::tr("New operator from a Python function");
    }
    return {};
}

QString sayingOf(Kind kind)
{
    switch (kind) {
    case Kind::Cards:
        return ImportDialog::tr(
            "Cards of other libraries come in as hypotheses: KLineage's SKILL.md and rich JSON, and skills of the Agent Skills "
            "standard. What was read is kept beside each card.");
    case Kind::Problems:
        return ImportDialog::tr(
            "Problems of other benchmarks become workloads: definitions of FlashInfer Trace and SOL-ExecBench with the workloads beside "
            "them, and KernelBench's Python files. A problem's Python becomes the oracle; it runs in a confined process, and needs what "
            "it imports (torch, numpy) in KLINEAGE_PYTHON or python3.");
    case Kind::Archive:
        return ImportDialog::tr(
            "What a search of another system left behind becomes a lineage: a checkpoint of OpenEvolve, an SQLite file of ShinkaEvolve, a "
            "folder of AdaExplore's. The path to its best program becomes the states, other programs attempts. Its scores stand in titles "
            "and reasons and are no trials; nothing of it is run.");
    case Kind::Operator:
        return ImportDialog::tr(
            "A Python function over numpy arrays, torch tensors or nested lists becomes a workload; its head says the shapes. It runs in a "
            "confined process, with KLINEAGE_PYTHON or python3, before anything is written; one that is not deterministic, or whose outputs "
            "take no work, is refused.");
    }
    return {};
}

/// So high that so many lines need no scroll bar, and room for the one below.
int heightOfLines(const QPlainTextEdit &edit, int lines)
{
    const int text =
        lines * edit.fontMetrics().lineSpacing() + 2 * static_cast<int>(edit.document()->documentMargin());
    return text + 2 * edit.frameWidth() + edit.horizontalScrollBar()->sizeHint().height();
}

} // namespace

ImportDialog::ImportDialog(QWidget *parent)
    : QDialog(parent)
    , m_runner(this)
    , m_model(new ImportModel(this))
    , m_what(new QLabel)
    , m_form(new ImportForm)
    , m_table(makePlainTable(m_model, tr("What the import did, or would do")))
    , m_detail(new QPlainTextEdit)
    , m_next(new QWidget)
    , m_whyNext(new QLabel)
    , m_commands(new QPlainTextEdit)
    , m_copy(new QPushButton(tr("Cop&y the commands")))
    , m_summary(new QLabel)
    , m_busy(new QProgressBar)
    , m_look(new QPushButton(tr("&Look first")))
    , m_import(new QPushButton(tr("&Import")))
    , m_stop(new QPushButton(tr("&Stop")))
    , m_close(new QPushButton(tr("&Close")))
{
    layOut();
    listen();
}

void ImportDialog::layOut()
{
    m_what->setWordWrap(true);
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_detail->setReadOnly(true);
    m_detail->setAccessibleName(tr("All that is said of the entry"));
    m_detail->setTabChangesFocus(true);
    auto *split = new QSplitter(Qt::Vertical);
    split->addWidget(m_table);
    split->addWidget(m_detail);
    split->setSizes({320, 90});
    split->setChildrenCollapsible(false);
    m_summary->setWordWrap(true);
    m_summary->setObjectName(QStringLiteral("importSummary"));
    m_summary->setTextFormat(Qt::PlainText);
    m_busy->setRange(0, 0);
    m_busy->setTextVisible(false);
    m_busy->setMaximumWidth(120);
    m_busy->setAccessibleName(tr("The import is running"));
    m_look->setToolTip(tr("Say what would be imported, and write nothing"));
    m_import->setObjectName(QStringLiteral("primaryButton"));
    auto *buttons = new QHBoxLayout;
    buttons->addWidget(m_busy);
    buttons->addStretch(1);
    for (QPushButton *button : {m_look, m_import, m_stop, m_close}) {
        button->setAutoDefault(false);
        buttons->addWidget(button);
    }
    // On a low screen it scrolls, rather than being squeezed.
    split->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
    split->setMinimumHeight(170);
    layOutNext();
    auto *page = new QWidget;
    auto *inner = new QVBoxLayout(page);
    inner->setContentsMargins(0, 0, 0, 0);
    inner->setSpacing(10);
    inner->addWidget(m_what);
    inner->addWidget(m_form);
    inner->addWidget(split, 1);
    auto *scroll = new QScrollArea;
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setWidget(page);
    auto *column = new QVBoxLayout(this);
    column->setSpacing(10);
    column->addWidget(scroll, 1);
    column->addWidget(m_next);
    column->addWidget(m_summary);
    column->addLayout(buttons);
    constexpr QSize frame(16, 40); // that the desktop adds, about
    resize(QSize(900, 680).boundedTo(screen()->availableSize() - frame));
}

/// How what was imported is gated: commands for a shell, here or where the device is.
void ImportDialog::layOutNext()
{
    m_whyNext->setWordWrap(true);
    m_commands->setObjectName(QStringLiteral("import.commands"));
    m_commands->setReadOnly(true);
    m_commands->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_commands->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff); // it is as high as they are
    m_commands->setFont(codeFont());
    m_commands->setTabChangesFocus(true);
    m_commands->setAccessibleName(tr("Commands that gate what was imported"));
    m_copy->setAutoDefault(false);
    auto *row = new QHBoxLayout;
    row->addWidget(m_commands, 1);
    row->addWidget(m_copy, 0, Qt::AlignTop);
    auto *column = new QVBoxLayout(m_next);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_whyNext);
    column->addLayout(row);
    m_next->hide();
}

void ImportDialog::listen()
{
    connect(m_form, &ImportForm::changed, this, &ImportDialog::updateButtons);
    connect(m_form, &ImportForm::message, m_summary, &QLabel::setText);
    connect(m_form, &ImportForm::returnPressed, this, [this] { run(true); });
    connect(m_look, &QPushButton::clicked, this, [this] { run(true); });
    connect(m_import, &QPushButton::clicked, this, [this] { run(false); });
    connect(m_stop, &QPushButton::clicked, &m_runner, &ImportRunner::stop);
    connect(m_close, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_copy, &QPushButton::clicked, this,
            [this] { QApplication::clipboard()->setText(m_commands->toPlainText()); });
    connect(&m_runner, &ImportRunner::ended, this, &ImportDialog::onEnded);
    connect(&m_second, &QTimer::timeout, this, &ImportDialog::showElapsed);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            &ImportDialog::showDetail);
}

void ImportDialog::begin(Kind kind, const QString &workspace, std::vector<ImportTarget> targets,
                         const QString &workload)
{
    if (isVisible()) {
        raise();
        return;
    }
    m_kind = kind;
    m_workspace = workspace;
    m_hasImported = false;
    m_lineage.clear();
    setWindowTitle(titleOf(kind));
    m_what->setText(sayingOf(kind));
    m_model->setReport({}, true);
    m_table->resizeColumnsToContents();
    m_detail->clear();
    m_next->hide();
    m_summary->setText(
        kind == Kind::Archive && targets.empty() ? tr(
            "This workspace has no workload that the programs could be of. Close this, and import problems or begin a lineage from a kernel of yours first.")
                                                 : QString());
    m_form->begin(kind, std::move(targets), workload);
    updateButtons();
    open();
    m_form->setFocus();
}

void ImportDialog::setFrom(const QString &path)
{
    m_form->setFrom(path);
}

void ImportDialog::run(bool isTrial)
{
    if (m_runner.isRunning() || !m_form->isComplete())
        return;
    m_isTrial = isTrial;
    m_model->setReport({}, isTrial);
    m_detail->clear();
    m_elapsed.start();
    m_second.start(1000);
    m_summary->setText(isTrial ? tr("Looking…") : tr("Importing…"));
    m_runner.start(m_kind, m_workspace, m_form->arguments(isTrial));
    updateButtons();
}

void ImportDialog::showElapsed()
{
    const qint64 seconds = m_elapsed.elapsed() / 1000;
    if (m_runner.isRunning())
        m_summary->setText(m_isTrial ? tr("Looking… %1 s").arg(seconds) : tr("Importing… %1 s").arg(seconds));
}

/// The report in a sentence.
QString ImportDialog::said(const ImportReport &report) const
{
    if (m_kind == Kind::Operator) {
        const ImportedEntry &entry = report.entries.front();
        return entry.name.isEmpty() ? tr("Refused: %1").arg(entry.reason)
               : m_isTrial
                   ? tr("It would become the workload %1. Nothing was written.").arg(entry.name)
                   : tr("It became the workload %1. A lineage of it begins with a kernel of yours, once this is closed.")
                         .arg(entry.name);
    }
    if (m_kind != Kind::Archive) {
        const QString counts = m_isTrial ? tr("%1 would come in, %2 would be skipped. Nothing was written.")
                               : m_kind == Kind::Cards ? tr("%1 imported as hypotheses, %2 skipped.")
                                                       : tr("%1 imported, %2 skipped.");
        return counts.arg(report.imported).arg(report.skipped());
    }
    if (report.imported == 0) {
        const QString why = report.entries.empty() ? QString() : report.entries.front().reason;
        return m_isTrial ? tr("Nothing would come in: %1").arg(why) : tr("Nothing was imported: %1").arg(why);
    }
    const QString counts =
        m_isTrial
            ? tr("It would become %1. States: %2, attempts: %3, skipped: %4. Nothing was written.")
            : tr(
                "It became %1. States: %2, attempts: %3, skipped: %4. The window shows it when this is closed.");
    return counts.arg(report.entries.front().name)
        .arg(report.states)
        .arg(report.attempts)
        .arg(report.skipped());
}

void ImportDialog::onEnded(const ImportReport &given, const QString &problem)
{
    m_second.stop();
    const bool hasOptions = m_kind == Kind::Archive || m_kind == Kind::Operator;
    const ImportReport report = hasOptions ? inWordsOfFields(given) : given;
    m_model->setReport(report, m_isTrial);
    m_table->resizeColumnsToContents();
    m_table->setColumnWidth(ImportModel::SourceColumn,
                            std::min(m_table->columnWidth(ImportModel::SourceColumn), 260));
    if (m_model->rowCount() > 0)
        m_table->selectRow(0);
    m_summary->setText(problem.isEmpty() ? said(report)
                       : hasOptions      ? m_form->inWordsOfFields(problem)
                                         : problem);
    // What a stopped import wrote is there, too, though no report names it.
    m_hasImported = m_hasImported || (!m_isTrial && (report.imported > 0 || !problem.isEmpty()));
    if (m_kind == Kind::Archive && !m_isTrial && report.imported > 0)
        m_lineage = report.entries.front().name;
    if (!report.next.isEmpty())
        showNext(report);
    updateButtons();
    if (!isVisible()) // it was closed in the middle
        tellImported();
}

/// Until the dialog is opened again, or another lineage comes in.
void ImportDialog::showNext(const ImportReport &report)
{
    m_whyNext->setText(
        tr("Nothing of %1 has been gated. These commands do that; the second one runs where the device is:")
            .arg(m_lineage));
    m_commands->setPlainText(report.next.join(QLatin1Char('\n')));
    m_commands->setFixedHeight(heightOfLines(*m_commands, static_cast<int>(report.next.size())));
    m_next->show();
}

ImportReport ImportDialog::inWordsOfFields(ImportReport report) const
{
    for (ImportedEntry &entry : report.entries) {
        if (entry.part != ImportedEntry::Part::Whole)
            continue;
        entry.reason = m_form->inWordsOfFields(entry.reason);
        for (QString &note : entry.notes)
            note = m_form->inWordsOfFields(note);
    }
    return report;
}

void ImportDialog::tellImported()
{
    if (std::exchange(m_hasImported, false))
        emit imported(std::exchange(m_lineage, {}));
}

void ImportDialog::showDetail()
{
    const int row = m_table->currentIndex().row();
    if (row < 0) {
        m_detail->clear();
        return;
    }
    const ImportedEntry &entry = m_model->report().entries[static_cast<std::size_t>(row)];
    QStringList lines{entry.name.isEmpty() ? tr("%1 was passed over: %2").arg(entry.source, entry.reason)
                                           : tr("%1, from %2").arg(entry.name, entry.source)};
    m_detail->setPlainText((lines + entry.notes).join(QLatin1Char('\n')));
}

void ImportDialog::updateButtons()
{
    const bool isRunning = m_runner.isRunning();
    m_look->setEnabled(!isRunning && m_form->isComplete());
    m_import->setEnabled(!isRunning && m_form->isComplete());
    m_stop->setEnabled(isRunning);
    m_busy->setVisible(isRunning);
}

QString ImportDialog::summary() const
{
    return m_summary->text();
}

/// The workspace is read again once the person has read the report.
void ImportDialog::hideEvent(QHideEvent *event)
{
    QDialog::hideEvent(event);
    m_runner.stop();
    tellImported();
}

} // namespace klineage::ui
