// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/authorform.h"

#include "core/llm/makeprovider.h"
#include "ui/keys/keyring.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr double usualCapDollars = 0.5;
constexpr double mostAuthorDollars = 1000;

QString authorTitle(const std::string &provider)
{
    if (provider == "exec")
        return AuthorForm::tr("exec: a program answers");
    if (provider == "replay")
        return AuthorForm::tr("replay: a recorded transcript");
    if (provider == "manual")
        return AuthorForm::tr("manual: a file that I answer in");
    return QString::fromStdString(provider);
}

} // namespace

AuthorForm::AuthorForm(KeyRing *keys, QWidget *parent)
    : QWidget(parent)
    , m_keys(keys)
    , m_form(new QFormLayout(this))
    , m_provider(new QComboBox)
    , m_model(new QLineEdit)
    , m_baseUrl(new QLineEdit)
    , m_key(new QLabel)
    , m_command(new QLineEdit)
    , m_transcript(new QLineEdit)
    , m_cap(new QDoubleSpinBox)
{
    for (const std::string &provider : llm::providerNames()) {
        if (!llm::needsModel(provider) || llm::hasNetworkProviders())
            m_provider->addItem(authorTitle(provider), QString::fromStdString(provider));
    }
    m_provider->setObjectName(QStringLiteral("author.provider"));
    m_model->setObjectName(QStringLiteral("author.model"));
    m_baseUrl->setObjectName(QStringLiteral("author.baseUrl"));
    m_command->setObjectName(QStringLiteral("author.command"));
    m_model->setPlaceholderText(tr("as the server names it"));
    m_baseUrl->setPlaceholderText(tr("the provider's own; or http://127.0.0.1:8000/v1"));
    m_command->setPlaceholderText(tr("reads the request's JSON on stdin, writes the reply to stdout"));
    m_transcript->setPlaceholderText(tr("a transcript.jsonl"));
    m_key->setWordWrap(true);
    m_cap->setRange(0, mostAuthorDollars);
    m_cap->setPrefix(QStringLiteral("$ "));
    m_cap->setSingleStep(0.1);
    m_cap->setValue(usualCapDollars);
    m_form->setContentsMargins(0, 0, 0, 0);
    m_form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    m_form->addRow(tr("&Author"), m_provider);
    m_form->addRow(tr("&Model"), m_model);
    m_form->addRow(tr("Ser&ver"), m_baseUrl);
    m_form->addRow(tr("Key"), m_key);
    m_form->addRow(tr("C&ommand"), m_command);
    m_form->addRow(tr("&Transcript"), m_transcript);
    m_form->addRow(tr("Ca&p"), m_cap);
    const auto tell = [this] {
        showFields();
        emit changed();
    };
    connect(m_provider, &QComboBox::currentIndexChanged, this, tell);
    for (QLineEdit *line : {m_model, m_baseUrl, m_command, m_transcript})
        connect(line, &QLineEdit::textChanged, this, tell);
    connect(m_cap, &QDoubleSpinBox::valueChanged, this, tell);
    if (m_keys)
        connect(m_keys, &KeyRing::changed, this, tell);
    showFields();
    setFocusProxy(m_provider);
}

run::Settings AuthorForm::author() const
{
    run::Settings settings;
    settings.provider = m_provider->currentData().toString().toStdString();
    settings.capDollars = m_cap->value();
    const auto take = [&settings](const char *name, const QLineEdit *line) {
        if (const std::string text = line->text().trimmed().toStdString(); !text.empty())
            settings.author[name] = text;
    };
    if (llm::needsModel(settings.provider)) {
        settings.model = m_model->text().trimmed().toStdString();
        take("base_url", m_baseUrl);
    }
    if (settings.provider == "exec")
        take("command", m_command);
    if (settings.provider == "replay")
        take("transcript", m_transcript);
    return settings;
}

void AuthorForm::setAuthor(const run::Settings &settings)
{
    const auto text = [&settings](const char *name) {
        const auto found = settings.author.find(name);
        return found == settings.author.end() ? QString() : QString::fromStdString(found->second);
    };
    m_provider->setCurrentIndex(std::max(0, m_provider->findData(QString::fromStdString(settings.provider))));
    m_model->setText(QString::fromStdString(settings.model));
    m_baseUrl->setText(text("base_url"));
    m_command->setText(text("command"));
    m_transcript->setText(text("transcript"));
    m_cap->setValue(settings.capDollars);
}

QString AuthorForm::problem() const
{
    const run::Settings settings = author();
    if (llm::needsModel(settings.provider) && settings.model.empty())
        return tr("Name the model, as its server calls it.");
    if (settings.provider == "exec" && !settings.author.contains("command"))
        return tr("Say the command of the program that answers.");
    if (settings.provider == "replay" && !settings.author.contains("transcript"))
        return tr("Name the transcript that answers.");
    return {};
}

void AuthorForm::showFields()
{
    const std::string provider = m_provider->currentData().toString().toStdString();
    const bool isNetwork = llm::needsModel(provider);
    m_form->setRowVisible(m_model, isNetwork);
    m_form->setRowVisible(m_baseUrl, isNetwork);
    m_form->setRowVisible(m_key, isNetwork);
    m_form->setRowVisible(m_command, provider == "exec");
    m_form->setRowVisible(m_transcript, provider == "replay");
    if (!isNetwork)
        return;
    const QString name = QString::fromStdString(provider);
    if (!m_keys) {
        m_key->setText(tr("It is taken from the environment: %1.").arg(KeyRing::variable(name)));
        return;
    }
    if (m_keys->state(name) == KeyState::Unknown)
        m_keys->look(name); // changed() may follow at once
    m_key->setText(m_keys->originText(name));
}

} // namespace klineage::ui
