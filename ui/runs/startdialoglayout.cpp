// SPDX-License-Identifier: GPL-3.0-or-later
// The fields of StartDialog and how they stand.
#include "ui/runs/authorrows.h"
#include "ui/runs/kernelbox.h"
#include "ui/runs/lineagechecks.h"
#include "ui/runs/startdialog.h"

#include "core/policy/policy.h"
#include "ui/style/segmentedswitch.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

constexpr double usualRunDollars = 10;

} // namespace

StartDialog::StartDialog(const Workspace &workspace, KeyRing *keys, QWidget *parent)
    : QDialog(parent)
    , m_workspace(workspace)
    , m_keys(keys)
    , m_kind(new SegmentedSwitch({tr("Materialize"), tr("Deoptimize"), tr("Lift"), tr("Admit")}))
    , m_form(new QFormLayout)
    , m_kernel(new KernelBox(workspace))
    , m_card(new QComboBox)
    , m_target(new KernelBox(workspace))
    , m_lineages(new LineageChecks(workspace))
    , m_again(new QCheckBox(tr("Also transitions that some card rests on already")))
    , m_workload(new QComboBox)
    , m_platform(new QLineEdit)
    , m_name(new QLineEdit)
    , m_policy(new QComboBox)
    , m_steps(new QSpinBox)
    , m_rejections(addCount(run::rejectionsOption))
    , m_repairs(addCount(run::repairsOption))
    , m_within(addCount(run::withinOption))
    , m_attempts(addCount(run::attemptsOption))
    , m_seed(new QSpinBox)
    , m_hypotheses(new QCheckBox(tr("Show h&ypotheses too: cards that nothing has proven yet")))
    , m_heldOut(new QCheckBox(tr("Leave out cards that rest on this workload's own lineages")))
    , m_gates(new QComboBox)
    , m_launcher(new QLineEdit)
    , m_estimate(new QLabel)
{
    setWindowTitle(tr("Start a run"));
    fillChoices();
    layOutFields();
    layOutFrame();
    listen();
    kindChanged();
}

QSpinBox *StartDialog::addCount(const run::CountOption &range)
{
    auto *box = new QSpinBox;
    box->setRange(range.least, range.most);
    box->setValue(range.absent);
    return box;
}

void StartDialog::fillChoices()
{
    for (const skills::CardRecord &record : m_workspace.cards) {
        if (!record.card.retired)
            m_card->addItem(QString::fromStdString(record.card.name));
    }
    for (const workload::Workload &workload : m_workspace.workloads)
        m_workload->addItem(QString::fromStdString(workload.name));
    for (const std::string &policy : policy::policyNames())
        m_policy->addItem(QString::fromStdString(policy));
    m_seed->setRange(0, 1'000'000);
    m_within->setSuffix(QStringLiteral(" %"));
}

void StartDialog::layOutFields()
{
    m_kind->setAccessibleName(tr("Kind of run"));
    m_kind->setToolTips({tr("Rewrite a kernel step by step under a budget"),
                         tr("Take a kernel apart, step by step, into a lineage"),
                         tr("Lift transitions of lineages into cards"),
                         tr("Try a card on a kernel that had no part in it")});
    m_kernel->setAccessibleNameOfField(tr("Kernel that the run begins with"));
    m_target->setAccessibleNameOfField(tr("Kernel that the card is tried on"));
    m_lineages->setAccessibleName(tr("Lineages to lift from; none checked: all"));
    m_platform->setPlaceholderText(tr("as in pocl or sm90"));
    m_launcher->setPlaceholderText(tr("starts the gate, as in: ssh HOST, or: srun --gres=gpu:1"));
    m_launcher->setToolTip(
        tr("The run's trials go to a gate that this command starts; klineage-gate has to be there"));
    m_name->setPlaceholderText(tr("put after the platform; needed when it has a lineage already"));
    m_steps->setToolTip(tr("0: no limit"));
    m_within->setToolTip(tr("What was derived again may be so much slower than the stronger kernel"));
    m_repairs->setToolTip(tr("Further tries at deriving a step again"));
    m_rejections->setToolTip(tr("Give up after so many rejections in a row"));
    m_attempts->setToolTip(tr("Candidates at most; each sees the verdict of the last"));

    m_hypotheses->setToolTip(tr("A card is a hypothesis until held-out roundtrips have admitted it"));

    m_form->addRow(tr("&Begin with"), m_kernel);
    m_form->addRow(tr("Car&d"), m_card);
    m_form->addRow(tr("Tar&get"), m_target);
    m_form->addRow(tr("&Lineages"), m_lineages);
    m_form->addRow(QString(), m_again);
    m_form->addRow(tr("&Workload"), m_workload);
    m_form->addRow(tr("Plat&form"), m_platform);
    m_form->addRow(tr("&Name"), m_name);
    m_form->addRow(tr("&Policy"), m_policy);
    m_author = new AuthorRows(
        m_form, m_keys, {tr("manual: I answer in this window"), QStringLiteral("manual"), usualRunDollars});
    m_form->addRow(tr("&Questions"), m_steps);
    m_form->addRow(tr("Re&jections"), m_rejections);
    m_form->addRow(tr("&Repairs"), m_repairs);
    m_form->addRow(tr("W&ithin"), m_within);
    m_form->addRow(tr("Attem&pts"), m_attempts);
    m_form->addRow(tr("S&eed"), m_seed);
    m_form->addRow(QString(), m_hypotheses);
    m_form->addRow(QString(), m_heldOut);
    m_form->addRow(tr("Gates"), m_gates);
    m_form->addRow(tr("La&uncher"), m_launcher);
    m_form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
}

void StartDialog::offerGates(const QString &poolFile, const RunPlace &place)
{
    m_quiet = true;
    m_gates->clear();
    if (!poolFile.isEmpty()) {
        m_gates->addItem(tr("the pool"), RunPlace::Pool);
        m_gates->setItemData(0, poolFile, Qt::ToolTipRole);
    }
    m_gates->addItem(tr("this machine's"), RunPlace::Here);
    m_gates->addItem(tr("through a launcher"), RunPlace::Launched);
    m_gates->setToolTip(poolFile);
    m_gates->setCurrentIndex(std::max(0, m_gates->findData(place.gates)));
    m_launcher->setText(place.launcher);
    m_quiet = false;
    update();
}

RunPlace StartDialog::runPlace() const
{
    RunPlace place;
    if (m_gates->count() > 0)
        place.gates = static_cast<RunPlace::Gates>(m_gates->currentData().toInt());
    place.launcher = m_launcher->text().trimmed();
    return place;
}

void StartDialog::layOutFrame()
{
    m_estimate->setWordWrap(true);
    m_estimate->setMinimumHeight(fontMetrics().lineSpacing() * 4);
    m_estimate->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_estimate->setAccessibleName(tr("What the run will cost, or what is missing"));
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
    m_start = buttons->addButton(tr("Start"), QDialogButtonBox::AcceptRole);
    m_start->setDefault(true);
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto *kindRow = new QHBoxLayout;
    kindRow->addWidget(m_kind);
    kindRow->addStretch(1);
    auto *layout = new QVBoxLayout(this);
    layout->setSpacing(10);
    layout->addLayout(kindRow);
    layout->addLayout(m_form);
    layout->addStretch(1);
    layout->addWidget(m_estimate);
    layout->addWidget(buttons);
    setMinimumWidth(580);
}

void StartDialog::listen()
{
    connect(m_kind, &SegmentedSwitch::currentChanged, this, [this] {
        m_steps->setValue(0); // a number of questions is none of groups
        kindChanged();
    });
    for (KernelBox *box : {m_kernel, m_target})
        connect(box, &KernelBox::changed, this, &StartDialog::update);
    connect(m_card, &QComboBox::currentIndexChanged, this, &StartDialog::cardChanged);
    for (QComboBox *box : {m_workload, m_policy, m_gates})
        connect(box, &QComboBox::currentIndexChanged, this, &StartDialog::update);
    for (QLineEdit *line : {m_platform, m_name, m_launcher})
        connect(line, &QLineEdit::textChanged, this, &StartDialog::update);
    for (QSpinBox *box : {m_steps, m_rejections, m_repairs, m_within, m_attempts, m_seed})
        connect(box, &QSpinBox::valueChanged, this, &StartDialog::update);
    for (QCheckBox *box : {m_again, m_hypotheses, m_heldOut})
        connect(box, &QCheckBox::toggled, this, &StartDialog::update);
    connect(m_author, &AuthorRows::changed, this, &StartDialog::update);
    connect(m_lineages, &QListWidget::itemChanged, this, &StartDialog::update);
}

void StartDialog::label(QWidget *field, const QString &text)
{
    if (auto *shown = qobject_cast<QLabel *>(m_form->labelForField(field)))
        shown->setText(text);
}

} // namespace klineage::ui
