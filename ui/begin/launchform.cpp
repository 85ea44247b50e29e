// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/launchform.h"

#include "core/kernel/candidatewords.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QVBoxLayout>

#include <algorithm>

namespace klineage::ui {

namespace {

QFormLayout *plainForm()
{
    auto *form = new QFormLayout;
    form->setContentsMargins(0, 0, 0, 0);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->setHorizontalSpacing(10);
    form->setVerticalSpacing(6);
    return form;
}

/// "float x", shortened in the middle where it is long.
QString parameterText(const kernel::KernelParameter &parameter)
{
    const QString text =
        QString::fromStdString(parameter.type + (parameter.type.ends_with('*') ? "" : " ") + parameter.name);
    constexpr qsizetype longest = 30;
    return text.size() <= longest ? text : text.left(12) + QStringLiteral("…") + text.right(longest - 13);
}

} // namespace

LaunchForm::LaunchForm(QWidget *parent)
    : QWidget(parent)
    , m_form(plainForm())
    , m_kernel(new QComboBox)
    , m_argumentForm(plainForm())
    , m_constantForm(plainForm())
    , m_argumentTitle(new QLabel(tr("Arguments, in the order of the parameters")))
    , m_constantTitle(new QLabel(tr("Constants that may become tunables")))
{
    m_kernel->setAccessibleName(tr("Kernel that is launched"));
    m_kernel->setObjectName(QStringLiteral("field.kernel"));
    m_form->addRow(tr("&Kernel"), withProblem(m_kernel, "kernel"));
    static_cast<QLabel *>(m_form->labelForField(m_kernel->parentWidget()))->setBuddy(m_kernel);
    m_grid = addLine(tr("&Grid"), tr("Grid: blocks or work-groups, x first"), QStringLiteral("grid"),
                     tr("ceil_div(C, 64), R"));
    m_block = addLine(tr("&Block"), tr("Block: threads or work-items, x first"), QStringLiteral("block"),
                      QStringLiteral("64"));
    m_shared = addLine(tr("S&hared"), tr("Dynamic shared memory, bytes"), QStringLiteral("shared"),
                       tr("bytes; empty: none"));
    for (QLabel *title : {m_argumentTitle, m_constantTitle})
        title->setFont(strongFont());
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    column->addLayout(m_form);
    column->addWidget(m_argumentTitle);
    column->addLayout(m_argumentForm);
    column->addWidget(m_constantTitle);
    column->addLayout(m_constantForm);
    m_argumentTitle->hide();
    m_constantTitle->hide();
    connect(m_kernel, &QComboBox::activated, this, [this] {
        fillArguments();
        emit kernelChosen();
    });
}

/// The widget with room for its problem below it.
QWidget *LaunchForm::withProblem(QWidget *widget, const std::string &field)
{
    auto *both = new QWidget;
    auto *column = new QVBoxLayout(both);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(1);
    auto *problem = new QLabel;
    problem->setObjectName(QStringLiteral("problem.") + QString::fromStdString(field));
    problem->setWordWrap(true);
    problem->setTextFormat(Qt::PlainText);
    problem->hide();
    column->addWidget(widget);
    column->addWidget(problem);
    m_problems[field] = problem;
    return both;
}

QLineEdit *LaunchForm::addLine(const QString &label, const QString &name, const QString &field,
                               const QString &hint)
{
    auto *line = new QLineEdit;
    line->setFont(codeFont());
    line->setAccessibleName(name);
    line->setToolTip(name);
    line->setPlaceholderText(hint);
    line->setObjectName(QStringLiteral("field.") + field);
    QWidget *both = withProblem(line, field.toStdString());
    m_form->addRow(label, both);
    static_cast<QLabel *>(m_form->labelForField(both))->setBuddy(line);
    connect(line, &QLineEdit::textChanged, this, [this] {
        if (!m_quiet)
            emit edited();
    });
    return line;
}

void LaunchForm::setOutline(const kernel::SourceOutline &outline, kernel::Surface surface)
{
    m_outline = outline;
    m_surface = surface;
    const std::string chosen = kernelName();
    m_kernel->clear();
    for (const kernel::KernelFunction &kernel : outline.kernels)
        m_kernel->addItem(tr("%1, line %2").arg(QString::fromStdString(kernel.name)).arg(kernel.line),
                          QString::fromStdString(kernel.name));
    const kernel::KernelFunction *likely = workload::likelyKernel(outline);
    int index = m_kernel->findData(QString::fromStdString(chosen));
    if (index < 0 && likely)
        index = m_kernel->findData(QString::fromStdString(likely->name));
    m_kernel->setCurrentIndex(index);
    m_kernel->setEnabled(m_kernel->count() > 0);
    m_form->setRowVisible(m_shared->parentWidget(), surface.device().launchAttributes);
    fillArguments();
    fillConstants();
}

void LaunchForm::setWorkload(const workload::Workload *workload)
{
    m_workload = workload;
    fillArguments();
}

std::string LaunchForm::kernelName() const
{
    return m_kernel->currentData().toString().toStdString();
}

void LaunchForm::dropProblem(const std::string &field)
{
    m_problems.erase(field);
}

/// What a parameter may be: tensors of its type, or axes as its type.
void LaunchForm::offerChoices(QComboBox *field, const kernel::KernelParameter &parameter) const
{
    if (!m_workload)
        return;
    if (parameter.kind == kernel::KernelParameter::Kind::Pointer) {
        for (const workload::Tensor &tensor : m_workload->tensors)
            field->addItem(QString::fromStdString(tensor.name));
    } else if (parameter.scalar) {
        const std::string word = kernel::wordOf(kernel::scalarWords, *parameter.scalar);
        for (const std::string &axis : m_workload->axes)
            field->addItem(QString::fromStdString(word + ' ' + axis));
    }
}

void LaunchForm::fillArguments()
{
    QStringList kept;
    for (const Argument &argument : m_arguments)
        kept << argument.field->currentText();
    while (m_argumentForm->rowCount() > 0)
        m_argumentForm->removeRow(0);
    for (std::size_t i = 0; i < m_arguments.size(); ++i)
        dropProblem("arg:" + std::to_string(i));
    m_arguments.clear();
    const std::string name = kernelName();
    const auto kernel = std::find_if(m_outline.kernels.begin(), m_outline.kernels.end(),
                                     [&](const auto &one) { return one.name == name; });
    if (kernel == m_outline.kernels.end()) {
        m_argumentTitle->hide();
        return;
    }
    for (std::size_t i = 0; i < kernel->parameters.size(); ++i) {
        const kernel::KernelParameter &parameter = kernel->parameters[i];
        auto *field = new QComboBox;
        field->setEditable(true);
        field->setInsertPolicy(QComboBox::NoInsert);
        field->setFont(codeFont());
        field->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
        field->setMinimumContentsLength(10);
        field->setObjectName(QStringLiteral("field.arg:%1").arg(i));
        field->setAccessibleName(
            tr("Argument for %1").arg(QString::fromStdString(parameter.type + ' ' + parameter.name)));
        offerChoices(field, parameter);
        if (field->completer())
            field->completer()->setCompletionMode(QCompleter::PopupCompletion);
        field->setEditText(kept.value(static_cast<qsizetype>(i)));
        connect(field, &QComboBox::currentTextChanged, this, [this] {
            if (!m_quiet)
                emit edited();
        });
        auto *label = new QLabel(parameterText(parameter));
        label->setFont(codeFont());
        label->setTextFormat(Qt::PlainText);
        label->setToolTip(QString::fromStdString(parameter.type + ' ' + parameter.name));
        QWidget *both = withProblem(field, "arg:" + std::to_string(i));
        m_argumentForm->addRow(label, both);
        m_arguments.push_back({label, field, both});
    }
    m_argumentTitle->setVisible(!m_arguments.empty());
}

void LaunchForm::fillConstants()
{
    std::map<std::string, QString> kept;
    for (const Constant &constant : m_constants) {
        if (constant.chosen->isChecked())
            kept[constant.chosen->text().section(u' ', 0, 0).toStdString()] = constant.values->text();
    }
    while (m_constantForm->rowCount() > 0)
        m_constantForm->removeRow(0);
    m_constants.clear();
    dropProblem("tunables");
    for (const kernel::SourceConstant &constant : m_outline.constants) {
        auto *chosen = new QCheckBox(
            QStringLiteral("%1 = %2").arg(QString::fromStdString(constant.name)).arg(constant.value));
        chosen->setFont(codeFont());
        chosen->setToolTip(tr("Line %1. As a tunable it can be swept over these values.").arg(constant.line));
        chosen->setObjectName(QStringLiteral("tunable.") + QString::fromStdString(constant.name));
        auto *values = new QLineEdit(QString::number(constant.value));
        values->setFont(codeFont());
        values->setAccessibleName(tr("Values of %1").arg(QString::fromStdString(constant.name)));
        const auto before = kept.find(constant.name);
        chosen->setChecked(before != kept.end());
        if (before != kept.end())
            values->setText(before->second);
        values->setEnabled(chosen->isChecked());
        connect(chosen, &QCheckBox::toggled, this, [this, values](bool on) {
            values->setEnabled(on);
            if (!m_quiet)
                emit edited();
        });
        connect(values, &QLineEdit::textChanged, this, [this] {
            if (!m_quiet)
                emit edited();
        });
        m_constantForm->addRow(chosen, values);
        m_constants.push_back({constant.value, chosen, values, values});
    }
    if (!m_constants.empty())
        m_constantForm->addRow(withProblem(new QWidget, "tunables"));
    m_constantTitle->setVisible(!m_constants.empty());
}

void LaunchForm::setDraft(const workload::PlanDraft &draft, const std::vector<std::string> &why)
{
    m_quiet = true;
    const int index = m_kernel->findData(QString::fromStdString(draft.kernel));
    if (index >= 0 && index != m_kernel->currentIndex()) {
        m_kernel->setCurrentIndex(index);
        fillArguments();
    }
    m_grid->setText(QString::fromStdString(workload::joinList(draft.grid)));
    m_block->setText(QString::fromStdString(workload::joinList(draft.block)));
    m_shared->setText(QString::fromStdString(draft.shared));
    for (std::size_t i = 0; i < m_arguments.size(); ++i) {
        m_arguments[i].field->setEditText(i < draft.args.size() ? QString::fromStdString(draft.args[i])
                                                                : QString());
        m_arguments[i].field->setToolTip(i < why.size() && !draft.args[i].empty()
                                             ? tr("Proposed: %1.").arg(QString::fromStdString(why[i]))
                                             : QString());
    }
    for (const Constant &constant : m_constants) {
        const std::string name = constant.chosen->text().section(u' ', 0, 0).toStdString();
        const auto tunable = std::find_if(draft.tunables.begin(), draft.tunables.end(),
                                          [&](const kernel::Tunable &one) { return one.name == name; });
        constant.chosen->setChecked(tunable != draft.tunables.end());
        if (tunable == draft.tunables.end())
            continue;
        QStringList values;
        for (const std::int64_t value : tunable->values)
            values << QString::number(value);
        constant.values->setText(values.join(QStringLiteral(", ")));
    }
    m_quiet = false;
}

workload::PlanDraft LaunchForm::draft() const
{
    workload::PlanDraft draft;
    draft.surface = m_surface;
    draft.kernel = kernelName();
    draft.grid = workload::splitList(m_grid->text().toStdString());
    draft.block = workload::splitList(m_block->text().toStdString());
    if (m_surface.device().launchAttributes)
        draft.shared = m_shared->text().trimmed().toStdString();
    for (const Argument &argument : m_arguments)
        draft.args.push_back(argument.field->currentText().trimmed().toStdString());
    for (const Constant &constant : m_constants) {
        if (!constant.chosen->isChecked())
            continue;
        kernel::Tunable tunable;
        tunable.name = constant.chosen->text().section(u' ', 0, 0).toStdString();
        tunable.defaultValue = constant.value;
        for (const QString &value : constant.values->text().split(u',', Qt::SkipEmptyParts)) {
            bool isNumber = false;
            const qlonglong number = value.trimmed().toLongLong(&isNumber);
            if (isNumber)
                tunable.values.push_back(number);
        }
        draft.tunables.push_back(std::move(tunable));
    }
    return draft;
}

void LaunchForm::showProblems(const std::vector<workload::FieldProblem> &problems)
{
    for (const auto &[field, label] : m_problems) {
        const auto found = std::find_if(problems.begin(), problems.end(),
                                        [&](const auto &problem) { return problem.field == field; });
        label->setVisible(found != problems.end());
        if (found == problems.end()) {
            label->clear();
            continue;
        }
        label->setText(tr("✕ %1").arg(QString::fromStdString(found->message)));
        QPalette colors = palette();
        colors.setColor(QPalette::WindowText, Theme::current().bad);
        label->setPalette(colors);
    }
}

} // namespace klineage::ui
