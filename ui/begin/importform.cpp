// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/importform.h"

#include "core/files/atomicfile.h"
#include "core/interop/archives/importarchive.h"
#include "core/kernel/surfaces/surface.h"
#include "ui/style/choosefile.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSpinBox>

#include <algorithm>
#include <utility>

namespace klineage::ui {

using Kind = ImportRunner::Kind;

namespace {

/// A whole operator, to be changed: what its head says are the shapes, what it returns is the definition.
constexpr const char *operatorTemplate =
    "import numpy as np\n\n\n"
    "# Parameters that are annotated are inputs, \"type[extent, …]\"; those with a number as default are numbers.\n"
    "# Several outputs are a tuple of such texts. torch tensors and nested lists do as well as numpy's arrays.\n"
    "def run(x: \"f32[R, C]\", weight: \"f32[C]\", eps=1e-6) -> \"f32[R, C]\":\n"
    "    \"\"\"Each row divided by its root mean square, times a weight.\"\"\"\n"
    "    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight\n";

} // namespace

ImportForm::ImportForm(QWidget *parent)
    : QWidget(parent)
    , m_form(new QFormLayout(this))
    , m_from(new QLineEdit)
    , m_fromRow(new QWidget)
    , m_folder(new QPushButton(tr("&Folder…")))
    , m_file(new QPushButton(tr("Fil&e…")))
    , m_template(new QPushButton(tr("&Template…")))
    , m_origin(new QLineEdit)
    , m_license(new QLineEdit)
    , m_values(new QLineEdit)
    , m_shapes(new QSpinBox)
    , m_workload(new QComboBox)
    , m_surface(new QComboBox)
    , m_name(new QLineEdit)
    , m_platform(new QComboBox)
    , m_most(new QSpinBox)
    , m_sizes(new QLineEdit)
    , m_flops(new QLineEdit)
    , m_replace(new QCheckBox)
{
    layOut();
    connect(m_template, &QPushButton::clicked, this, &ImportForm::writeTemplate);
    connect(m_folder, &QPushButton::clicked, this, [this] { choose(true); });
    connect(m_file, &QPushButton::clicked, this, [this] { choose(false); });
    connect(m_from, &QLineEdit::textChanged, this, &ImportForm::changed);
    connect(m_from, &QLineEdit::returnPressed, this, &ImportForm::returnPressed);
    connect(m_workload, &QComboBox::currentTextChanged, this, [this] {
        showPlatforms();
        emit changed();
    });
}

void ImportForm::layOut()
{
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
    m_workload->setObjectName(QStringLiteral("import.workload"));
    m_workload->setToolTip(tr("What the programs compute"));
    m_surface->setObjectName(QStringLiteral("import.surface"));
    m_surface->setToolTip(tr("What programs are written for that do not say it; others are left out"));
    m_surface->addItem(tr("what the best program says"), QString());
    for (const std::string &surface : kernel::surfaceNames())
        m_surface->addItem(QString::fromStdString(surface), QString::fromStdString(surface));
    m_name->setObjectName(QStringLiteral("import.name"));
    m_platform->setObjectName(QStringLiteral("import.platform"));
    m_platform->setEditable(true);
    m_platform->setInsertPolicy(QComboBox::NoInsert);
    m_platform->lineEdit()->setPlaceholderText(
        tr("as in pocl or sm90; empty: that of the workload's other lineages"));
    m_most->setObjectName(QStringLiteral("import.most"));
    m_most->setRange(1, static_cast<int>(interop::mostArchivedPrograms));
    m_most->setValue(static_cast<int>(interop::ArchiveOptions().most));
    m_most->setToolTip(
        tr("How many programs at most; besides the path to the best those with the best scores"));

    m_sizes->setObjectName(QStringLiteral("import.sizes"));
    m_sizes->setPlaceholderText(tr("of the axes where it is timed, as in R=4096 C=1024"));
    m_flops->setObjectName(QStringLiteral("import.flops"));
    m_flops->setPlaceholderText(
        tr("operations of one run, as in 4 * R * C; empty: one for each element of an output"));
    m_replace->setObjectName(QStringLiteral("import.replace"));
    m_replace->setText(tr("the workload of that name, whose files are kept beside it"));
    m_template->setToolTip(tr("Write an example of such a function into a file of yours, to be changed"));

    auto *from = new QHBoxLayout(m_fromRow);
    from->setContentsMargins(0, 0, 0, 0);
    from->addWidget(m_from, 1);
    for (QPushButton *button : {m_folder, m_file, m_template}) {
        button->setAutoDefault(false);
        from->addWidget(button);
    }
    m_fromRow->setFocusProxy(m_from);
    setFocusProxy(m_from);
    m_form->setContentsMargins(0, 0, 0, 0);
    m_form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    addRow(tr("F&rom"), m_fromRow, {Kind::Cards, Kind::Problems, Kind::Archive, Kind::Operator});
    addRow(tr("&Origin"), m_origin, {Kind::Cards});
    addRow(tr("Lice&nse"), m_license, {Kind::Cards});
    addRow(tr("&Values"), m_values, {Kind::Problems});
    addRow(tr("S&hapes"), m_shapes, {Kind::Problems});
    addRow(tr("&Workload"), m_workload, {Kind::Archive});
    addRow(tr("S&urface"), m_surface, {Kind::Archive});
    addRow(tr("&Platform"), m_platform, {Kind::Archive});
    addRow(tr("&Name"), m_name, {Kind::Archive, Kind::Operator});
    addRow(tr("Si&zes"), m_sizes, {Kind::Operator});
    addRow(tr("Fl&ops"), m_flops, {Kind::Operator});
    addRow(tr("Re&place"), m_replace, {Kind::Operator});
    addRow(tr("Pro&grams"), m_most, {Kind::Archive});
}

void ImportForm::addRow(const QString &label, QWidget *field, std::vector<Kind> kinds)
{
    m_form->addRow(label, field);
    if (field->focusProxy()) // a label's key goes to nothing that takes no focus itself
        qobject_cast<QLabel *>(m_form->labelForField(field))->setBuddy(field->focusProxy());
    m_rows.push_back({field, std::move(kinds)});
}

void ImportForm::begin(Kind kind, std::vector<ImportTarget> targets, const QString &workload)
{
    m_kind = kind;
    const bool isOperator = kind == Kind::Operator;
    m_folder->setVisible(!isOperator);
    m_template->setVisible(isOperator);
    m_replace->setChecked(false);
    m_name->setPlaceholderText(
        isOperator ? tr("of the workload; empty: the file's")
                   : tr("of the lineage, put after the platform; empty: what the system is called"));
    for (const Row &row : m_rows)
        m_form->setRowVisible(row.field,
                              std::find(row.kinds.begin(), row.kinds.end(), kind) != row.kinds.end());
    m_targets = std::move(targets);
    const QString before = m_workload->currentText();
    {
        const QSignalBlocker blocker(m_workload);
        m_workload->clear();
        for (const ImportTarget &target : m_targets)
            m_workload->addItem(target.workload);
        for (const QString &wanted : {before, workload}) {
            if (const int at = m_workload->findText(wanted); at >= 0)
                m_workload->setCurrentIndex(at);
        }
    }
    showPlatforms();
    m_from->clear();
    m_from->setFocus();
}

/// Those of the chosen workload's lineages to choose from; what was typed stays.
void ImportForm::showPlatforms()
{
    const QString typed = m_platform->currentText();
    m_platform->clear();
    for (const ImportTarget &target : m_targets) {
        if (target.workload == m_workload->currentText())
            m_platform->addItems(target.platforms);
    }
    m_platform->setEditText(typed);
}

void ImportForm::setFrom(const QString &path)
{
    m_from->setText(path);
}

void ImportForm::choose(bool isFolder)
{
    const QString path = isFolder ? chooseFolder(this, tr("Import a folder"), {})
                                  : chooseFileToOpen(this, tr("Import a file"), {}, {});
    if (!path.isEmpty())
        setFrom(path);
}

void ImportForm::writeTemplate()
{
    const QString path =
        chooseFileToSave(this, tr("Write a template"), QStringLiteral("rms_rows"), tr("Python (*.py)"));
    if (path.isEmpty())
        return;
    if (const Status written = files::writeFileAtomic(path.toStdString(), operatorTemplate); !written) {
        emit message(QString::fromStdString(written.error().message));
        return;
    }
    setFrom(path);
    m_sizes->setText(QStringLiteral("R=4096 C=1024"));
    m_flops->setText(QStringLiteral("4 * R * C"));
    emit message(tr("Wrote %1. Change it in an editor of yours, and look.").arg(path));
}

bool ImportForm::isComplete() const
{
    return !m_from->text().trimmed().isEmpty()
           && (m_kind != Kind::Archive || !m_workload->currentText().isEmpty());
}

QStringList ImportForm::arguments(bool isTrial) const
{
    QStringList arguments;
    const auto add = [&arguments](const QString &name, const QString &value) {
        if (!value.isEmpty())
            arguments << name + QLatin1Char('=') + value;
    };
    if (isTrial)
        arguments << QStringLiteral("--dry-run");
    QString from = m_from->text().trimmed();
    switch (m_kind) {
    case Kind::Cards:
        add(QStringLiteral("--origin"), m_origin->text().trimmed());
        add(QStringLiteral("--license"), m_license->text().trimmed());
        break;
    case Kind::Problems:
        for (const QString &value : m_values->text().split(QLatin1Char(' '), Qt::SkipEmptyParts))
            add(QStringLiteral("--set"), value);
        add(QStringLiteral("--shapes"), QString::number(m_shapes->value()));
        break;
    case Kind::Operator:
        for (const QString &size : m_sizes->text().split(QLatin1Char(' '), Qt::SkipEmptyParts))
            add(QStringLiteral("--size"), size);
        add(QStringLiteral("--flops"), m_flops->text().trimmed());
        add(QStringLiteral("--name"), m_name->text().trimmed());
        if (m_replace->isChecked())
            arguments << QStringLiteral("--replace");
        break;
    case Kind::Archive:
        add(QStringLiteral("--workload"), m_workload->currentText());
        add(QStringLiteral("--surface"), m_surface->currentData().toString());
        add(QStringLiteral("--platform"), m_platform->currentText().trimmed());
        add(QStringLiteral("--name"), m_name->text().trimmed());
        add(QStringLiteral("--most"), QString::number(m_most->value()));
        from = QFileInfo(from).absoluteFilePath();
        break;
    }
    // A name that begins with "-" is a name.
    return arguments << QStringLiteral("--") << from;
}

QString ImportForm::inWordsOfFields(QString sentence) const
{
    const std::pair<const char *, QWidget *> options[] = {
        {"--surface", m_surface}, {"--platform", m_platform}, {"--most", m_most}, {"--size", m_sizes},
        {"--flops", m_flops},     {"--replace", m_replace},   {"--name", m_name}};
    for (const auto &[option, field] : options) {
        const auto *label = qobject_cast<const QLabel *>(m_form->labelForField(field));
        sentence.replace(QLatin1String(option),
                         tr("the field %1").arg(label->text().remove(QLatin1Char('&'))));
    }
    return sentence;
}

} // namespace klineage::ui
