// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/importdialog.h"

#include "ui/style/choosefile.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/status.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScreen>
#include <QSpinBox>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace klineage::ui {

using Kind = ImportRunner::Kind;

void ImportModel::setReport(const ImportReport &report, bool isTrial)
{
    beginResetModel();
    m_report = report;
    m_isTrial = isTrial;
    endResetModel();
}

int ImportModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_report.entries.size());
}

int ImportModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ImportModel::data(const QModelIndex &index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid))
        return {};
    const ImportedEntry &entry = m_report.entries[static_cast<std::size_t>(index.row())];
    const bool isTaken = !entry.name.isEmpty();
    if (role == Qt::ForegroundRole && index.column() == StateColumn)
        return toneColor(isTaken ? Tone::Good : Tone::Warn);
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole)
        return {};
    switch (index.column()) {
    case StateColumn:
        return !isTaken ? tr("– skipped") : m_isTrial ? tr("✓ would come in") : tr("✓ imported");
    case NameColumn:
        return entry.name;
    case SourceColumn:
        return entry.source;
    default:
        return isTaken
                   ? entry.notes.join(role == Qt::ToolTipRole ? QStringLiteral("\n") : QStringLiteral(" · "))
                   : entry.reason;
    }
}

QVariant ImportModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft);
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case StateColumn:
        return tr("What became of it");
    case NameColumn:
        return tr("Name here");
    case SourceColumn:
        return tr("From");
    default:
        return tr("Why, and what was left out or chosen");
    }
}

ImportDialog::ImportDialog(QWidget *parent)
    : QDialog(parent)
    , m_model(new ImportModel(this))
    , m_what(new QLabel)
    , m_form(new QFormLayout)
    , m_from(new QLineEdit)
    , m_fromRow(new QWidget)
    , m_origin(new QLineEdit)
    , m_license(new QLineEdit)
    , m_values(new QLineEdit)
    , m_shapes(new QSpinBox)
    , m_table(makePlainTable(m_model, tr("What the import did, or would do")))
    , m_detail(new QPlainTextEdit)
    , m_summary(new QLabel)
    , m_folder(new QPushButton(tr("&Folder…")))
    , m_file(new QPushButton(tr("Fil&e…")))
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
    m_from->setObjectName(QStringLiteral("import.from"));
    m_from->setAccessibleName(tr("Folder or file to import"));
    m_from->setPlaceholderText(tr("a folder, or one file"));
    m_origin->setPlaceholderText(tr("whose library it is; empty: the folder's name"));
    m_license->setPlaceholderText(
        tr("of cards that say none; empty: the first line of LICENSE in the folder"));
    m_values->setObjectName(QStringLiteral("import.values"));
    m_values->setPlaceholderText(tr("values in place of the files' own, with blanks between: M=512 N=1024"));
    m_shapes->setRange(1, 32);
    m_shapes->setValue(3);
    m_shapes->setToolTip(tr("How many of a definition's shapes become cases, besides drawn ones"));
    auto *from = new QHBoxLayout(m_fromRow);
    from->setContentsMargins(0, 0, 0, 0);
    from->addWidget(m_from, 1);
    from->addWidget(m_folder);
    from->addWidget(m_file);
    m_fromRow->setFocusProxy(m_from);
    m_form->setContentsMargins(0, 0, 0, 0);
    m_form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    m_form->addRow(tr("F&rom"), m_fromRow);
    m_form->addRow(tr("&Origin"), m_origin);
    m_form->addRow(tr("Lice&nse"), m_license);
    m_form->addRow(tr("&Values"), m_values);
    m_form->addRow(tr("S&hapes"), m_shapes);
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
    m_look->setToolTip(tr("Say what would be imported, and write nothing"));
    m_import->setObjectName(QStringLiteral("primaryButton"));
    auto *buttons = new QHBoxLayout;
    buttons->addWidget(m_summary, 1);
    for (QPushButton *button : {m_look, m_import, m_stop, m_close}) {
        button->setAutoDefault(false);
        buttons->addWidget(button);
    }
    m_folder->setAutoDefault(false);
    m_file->setAutoDefault(false);
    auto *column = new QVBoxLayout(this);
    column->setSpacing(10);
    column->addWidget(m_what);
    column->addLayout(m_form);
    column->addWidget(split, 1);
    column->addLayout(buttons);
    constexpr QSize frame(16, 40); // that the desktop adds, about
    resize(QSize(900, 620).boundedTo(screen()->availableSize() - frame));
}

void ImportDialog::listen()
{
    connect(m_folder, &QPushButton::clicked, this, [this] { choose(true); });
    connect(m_file, &QPushButton::clicked, this, [this] { choose(false); });
    connect(m_from, &QLineEdit::textChanged, this, &ImportDialog::updateButtons);
    connect(m_from, &QLineEdit::returnPressed, this, [this] { run(true); });
    connect(m_look, &QPushButton::clicked, this, [this] { run(true); });
    connect(m_import, &QPushButton::clicked, this, [this] { run(false); });
    connect(m_stop, &QPushButton::clicked, &m_runner, &ImportRunner::stop);
    connect(m_close, &QPushButton::clicked, this, &QDialog::reject);
    connect(&m_runner, &ImportRunner::ended, this, &ImportDialog::onEnded);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            &ImportDialog::showDetail);
}

void ImportDialog::begin(Kind kind, const QString &workspace)
{
    if (isVisible()) {
        raise();
        return;
    }
    m_kind = kind;
    m_workspace = workspace;
    m_hasImported = false;
    const bool isOfCards = kind == Kind::Cards;
    setWindowTitle(isOfCards ? tr("Import cards") : tr("Import problems"));
    m_what->setText(
        isOfCards
            ? tr(
                "Cards of other libraries come in as hypotheses: KLineage's SKILL.md and rich JSON, and skills of the Agent Skills "
                "standard. What was read is kept beside each card.")
            : tr(
                "Problems of other benchmarks become workloads: definitions of FlashInfer Trace and SOL-ExecBench with the workloads beside "
                "them, and KernelBench's Python files. A problem's Python becomes the oracle; it runs in a confined process, and needs what "
                "it imports (torch, numpy) in KLINEAGE_PYTHON or python3."));
    m_form->setRowVisible(m_origin, isOfCards);
    m_form->setRowVisible(m_license, isOfCards);
    m_form->setRowVisible(m_values, !isOfCards);
    m_form->setRowVisible(m_shapes, !isOfCards);
    m_from->clear();
    m_model->setReport({}, true);
    m_detail->clear();
    m_summary->clear();
    updateButtons();
    open();
    m_from->setFocus();
}

void ImportDialog::setFrom(const QString &path)
{
    m_from->setText(path);
}

void ImportDialog::choose(bool isFolder)
{
    const QString path = isFolder ? chooseFolder(this, tr("Import a folder"), {})
                                  : chooseFileToOpen(this, tr("Import a file"), {}, {});
    if (!path.isEmpty())
        setFrom(path);
}

QStringList ImportDialog::arguments(bool isTrial) const
{
    QStringList arguments;
    const auto add = [&arguments](const QString &name, const QString &value) {
        if (!value.isEmpty())
            arguments << name + QLatin1Char('=') + value;
    };
    if (isTrial)
        arguments << QStringLiteral("--dry-run");
    if (m_kind == Kind::Cards) {
        add(QStringLiteral("--origin"), m_origin->text().trimmed());
        add(QStringLiteral("--license"), m_license->text().trimmed());
    } else {
        for (const QString &value : m_values->text().split(QLatin1Char(' '), Qt::SkipEmptyParts))
            add(QStringLiteral("--set"), value);
        add(QStringLiteral("--shapes"), QString::number(m_shapes->value()));
    }
    // A name that begins with "-" is a name.
    return arguments << QStringLiteral("--") << m_from->text().trimmed();
}

void ImportDialog::run(bool isTrial)
{
    if (m_runner.isRunning() || m_from->text().trimmed().isEmpty())
        return;
    m_isTrial = isTrial;
    m_model->setReport({}, isTrial);
    m_summary->setText(isTrial ? tr("Looking…") : tr("Importing…"));
    m_runner.start(m_kind, m_workspace, arguments(isTrial));
    updateButtons();
}

void ImportDialog::onEnded(const ImportReport &report, const QString &problem)
{
    m_model->setReport(report, m_isTrial);
    m_table->resizeColumnsToContents();
    m_table->setColumnWidth(ImportModel::SourceColumn,
                            std::min(m_table->columnWidth(ImportModel::SourceColumn), 260));
    if (m_model->rowCount() > 0)
        m_table->selectRow(0);
    const int skipped = m_model->rowCount() - report.imported;
    const QString said = m_isTrial ? tr("%1 would come in, %2 would be skipped. Nothing was written.")
                         : m_kind == Kind::Cards ? tr("%1 imported as hypotheses, %2 skipped.")
                                                 : tr("%1 imported, %2 skipped.");
    m_summary->setText(problem.isEmpty() ? said.arg(report.imported).arg(skipped) : problem);
    // What a stopped import wrote is there, too, though no report names it.
    m_hasImported = m_hasImported || (!m_isTrial && (report.imported > 0 || !problem.isEmpty()));
    updateButtons();
    if (!isVisible() && std::exchange(m_hasImported, false)) // it was closed in the middle
        emit imported();
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
    const bool canRun = !m_runner.isRunning() && !m_from->text().trimmed().isEmpty();
    m_look->setEnabled(canRun);
    m_import->setEnabled(canRun);
    m_stop->setEnabled(m_runner.isRunning());
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
    if (std::exchange(m_hasImported, false))
        emit imported();
}

} // namespace klineage::ui
