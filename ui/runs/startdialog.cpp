// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/startdialog.h"

#include "core/llm/makeprovider.h"
#include "core/policy/policy.h"
#include "ui/runs/runentry.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

bool needsNetwork(const std::string &provider)
{
    return provider == "anthropic" || provider == "openai";
}

QString providerText(const std::string &provider)
{
    if (provider == "manual")
        return StartDialog::tr("manual: I answer in this window");
    if (provider == "exec")
        return StartDialog::tr("exec: a program answers");
    if (provider == "replay")
        return StartDialog::tr("replay: a recorded transcript");
    return QString::fromStdString(provider);
}

} // namespace

StartDialog::StartDialog(const Workspace &workspace, const QString &root, QWidget *parent)
    : QDialog(parent)
    , m_workspace(workspace)
    , m_form(new QFormLayout)
    , m_root(new QComboBox)
    , m_policy(new QComboBox)
    , m_provider(new QComboBox)
    , m_model(new QLineEdit)
    , m_command(new QLineEdit)
    , m_baseUrl(new QLineEdit)
    , m_transcript(new QLineEdit)
    , m_cap(new QDoubleSpinBox)
    , m_questions(new QSpinBox)
    , m_seed(new QSpinBox)
    , m_heldOut(new QCheckBox(tr("Leave out cards that rest on this workload's own lineages")))
    , m_estimate(new QLabel)
    , m_start(nullptr)
{
    setWindowTitle(tr("Start a run"));
    for (const lineage::Lineage &lineage : workspace.lineages) {
        for (const lineage::State &state : lineage.states)
            m_root->addItem(QString::fromStdString(lineage.key() + '/' + state.id));
    }
    m_root->setCurrentIndex(std::max(0, m_root->findText(root)));
    for (const std::string &policy : policy::policyNames())
        m_policy->addItem(QString::fromStdString(policy));
    for (const std::string &provider : llm::providerNames()) {
        if (!needsNetwork(provider) || llm::hasNetworkProviders())
            m_provider->addItem(providerText(provider), QString::fromStdString(provider));
    }
    m_provider->setCurrentIndex(m_provider->findData(QStringLiteral("manual")));
    m_cap->setRange(0, 10'000);
    m_cap->setPrefix(QStringLiteral("$ "));
    m_cap->setValue(10);
    m_questions->setRange(0, 100'000);
    m_questions->setSpecialValueText(tr("until budget or policy end it"));
    m_seed->setRange(0, 1'000'000);
    layOut();

    for (QComboBox *box : {m_root, m_policy, m_provider})
        connect(box, &QComboBox::currentIndexChanged, this, &StartDialog::update);
    for (QLineEdit *line : {m_model, m_command, m_baseUrl, m_transcript})
        connect(line, &QLineEdit::textChanged, this, &StartDialog::update);
    for (QSpinBox *box : {m_questions, m_seed})
        connect(box, &QSpinBox::valueChanged, this, &StartDialog::update);
    connect(m_cap, &QDoubleSpinBox::valueChanged, this, &StartDialog::update);
    connect(m_heldOut, &QCheckBox::toggled, this, &StartDialog::update);
    update();
}

void StartDialog::layOut()
{
    m_command->setPlaceholderText(tr("reads the request's JSON on stdin, writes the reply to stdout"));
    m_model->setPlaceholderText(tr("as the server names it"));
    m_baseUrl->setPlaceholderText(tr("the provider's own; or http://127.0.0.1:8000/v1"));
    m_transcript->setPlaceholderText(tr("a transcript.jsonl"));
    m_form->addRow(tr("&Begin with"), m_root);
    m_form->addRow(tr("&Policy"), m_policy);
    m_form->addRow(tr("&Author"), m_provider);
    m_form->addRow(tr("&Model"), m_model);
    m_form->addRow(tr("Ser&ver"), m_baseUrl);
    m_form->addRow(tr("C&ommand"), m_command);
    m_form->addRow(tr("&Transcript"), m_transcript);
    m_form->addRow(tr("&Cap"), m_cap);
    m_form->addRow(tr("&Questions"), m_questions);
    m_form->addRow(tr("S&eed"), m_seed);
    m_form->addRow(QString(), m_heldOut);
    m_form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    m_estimate->setWordWrap(true);
    m_estimate->setMinimumHeight(fontMetrics().lineSpacing() * 4);
    m_estimate->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_estimate->setAccessibleName(tr("What the run will cost, or what is missing"));
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
    m_start = buttons->addButton(tr("Start"), QDialogButtonBox::AcceptRole);
    m_start->setDefault(true);
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto *layout = new QVBoxLayout(this);
    layout->addLayout(m_form);
    layout->addWidget(m_estimate);
    layout->addWidget(buttons);
    setMinimumWidth(520);
}

RunForm StartDialog::form() const
{
    RunForm form;
    form.root = m_root->currentText().toStdString();
    form.policy = m_policy->currentText().toStdString();
    form.provider = m_provider->currentData().toString().toStdString();
    form.model = m_model->text().trimmed().toStdString();
    form.command = m_command->text().trimmed().toStdString();
    form.baseUrl = m_baseUrl->text().trimmed().toStdString();
    form.transcript = m_transcript->text().trimmed().toStdString();
    form.capDollars = m_cap->value();
    form.maxQuestions = m_questions->value();
    form.seed = m_seed->value();
    form.heldOut = m_heldOut->isChecked();
    return form;
}

void StartDialog::setForm(const RunForm &form)
{
    m_root->setCurrentIndex(std::max(0, m_root->findText(QString::fromStdString(form.root))));
    m_policy->setCurrentText(QString::fromStdString(form.policy));
    m_provider->setCurrentIndex(std::max(0, m_provider->findData(QString::fromStdString(form.provider))));
    m_model->setText(QString::fromStdString(form.model));
    m_command->setText(QString::fromStdString(form.command));
    m_baseUrl->setText(QString::fromStdString(form.baseUrl));
    m_transcript->setText(QString::fromStdString(form.transcript));
    m_cap->setValue(form.capDollars);
    m_questions->setValue(form.maxQuestions);
    m_seed->setValue(form.seed);
    m_heldOut->setChecked(form.heldOut);
}

/// Fields that the author does not have are away; what is missing, or the estimate, is said at once.
void StartDialog::update()
{
    const RunForm now = form();
    const bool network = needsNetwork(now.provider);
    m_form->setRowVisible(m_model, llm::needsModel(now.provider));
    m_form->setRowVisible(m_baseUrl, network);
    m_form->setRowVisible(m_command, now.provider == "exec");
    m_form->setRowVisible(m_transcript, now.provider == "replay");
    m_form->setRowVisible(m_heldOut, policy::usesCards(now.policy, {}));
    const Result<run::Settings> settings = runSettings(m_workspace, now);
    Result<std::optional<run::Estimate>> estimate = std::optional<run::Estimate>();
    if (settings)
        estimate = runEstimate(m_workspace, *settings);
    m_start->setEnabled(settings.has_value() && estimate.has_value());
    if (!settings) {
        m_estimate->setText(QString::fromStdString(settings.error().message));
        return;
    }
    if (!estimate) {
        const Error &error = estimate.error();
        m_estimate->setText(QString::fromStdString(
            error.detail.empty() ? error.message : error.message + "\n" + error.detail));
        return;
    }
    m_settings = *settings;
    QString text =
        *estimate ? QString::fromStdString((*estimate)->text) : tr("Replies of this author cost nothing.");
    if (network)
        text += QLatin1Char(' ')
                + tr("The key is taken from the environment: %1.")
                      .arg(now.provider == "anthropic" ? QStringLiteral("ANTHROPIC_API_KEY")
                                                       : QStringLiteral("OPENAI_API_KEY"));
    m_estimate->setText(text);
}

} // namespace klineage::ui
