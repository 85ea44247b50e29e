// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/authorrows.h"

#include "core/llm/makeprovider.h"
#include "core/run/drive/start.h"
#include "ui/keys/keyring.h"
#include "ui/keys/keysdialog.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

#include <algorithm>

namespace klineage::ui {

AuthorRows::AuthorRows(QFormLayout *form, KeyRing *keys, const Usual &usual)
    : QObject(form)
    , m_keys(keys)
    , m_form(form)
    , m_provider(new QComboBox)
    , m_model(new QLineEdit)
    , m_baseUrl(new QLineEdit)
    , m_keyRow(new QWidget)
    , m_key(new QLabel)
    , m_command(new QLineEdit)
    , m_transcript(new QLineEdit)
    , m_cap(new QDoubleSpinBox)
{
    fill(usual);
    auto *keyRow = new QHBoxLayout(m_keyRow);
    keyRow->setContentsMargins(0, 0, 0, 0);
    m_key->setWordWrap(true);
    keyRow->addWidget(m_key, 1);
    if (m_keys) {
        auto *change = new QPushButton(tr("API keys…"));
        change->setAutoDefault(false);
        keyRow->addWidget(change);
        connect(change, &QPushButton::clicked, this, &AuthorRows::changeKeys);
    }
    m_form->addRow(tr("&Author"), m_provider);
    m_form->addRow(tr("&Model"), m_model);
    m_form->addRow(tr("Ser&ver"), m_baseUrl);
    m_form->addRow(tr("Key"), m_keyRow);
    m_form->addRow(tr("C&ommand"), m_command);
    m_form->addRow(tr("&Transcript"), m_transcript);
    m_form->addRow(tr("&Cap"), m_cap);
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
}

void AuthorRows::fill(const Usual &usual)
{
    const auto title = [&usual](const std::string &provider) {
        if (provider == "exec")
            return tr("exec: a program answers");
        if (provider == "replay")
            return tr("replay: a recorded transcript");
        return provider == "manual" ? usual.manual : QString::fromStdString(provider);
    };
    for (const std::string &provider : llm::providerNames()) {
        if (!llm::needsModel(provider) || llm::hasNetworkProviders())
            m_provider->addItem(title(provider), QString::fromStdString(provider));
    }
    m_provider->setCurrentIndex(std::max(0, m_provider->findData(usual.provider)));
    m_provider->setObjectName(QStringLiteral("author.provider"));
    m_model->setObjectName(QStringLiteral("author.model"));
    m_baseUrl->setObjectName(QStringLiteral("author.baseUrl"));
    m_command->setObjectName(QStringLiteral("author.command"));
    m_model->setPlaceholderText(tr("as the server names it"));
    m_baseUrl->setPlaceholderText(tr("the provider's own; or http://127.0.0.1:8000/v1"));
    m_command->setPlaceholderText(tr("reads the request's JSON on stdin, writes the reply to stdout"));
    m_transcript->setPlaceholderText(tr("a transcript.jsonl"));
    m_cap->setRange(0, run::mostCapDollars);
    m_cap->setPrefix(QStringLiteral("$ "));
    m_cap->setSingleStep(usual.capDollars < 1 ? 0.1 : 1);
    m_cap->setValue(usual.capDollars);
}

void AuthorRows::changeKeys()
{
    KeysDialog(m_keys, m_form->parentWidget()).exec();
}

void AuthorRows::setFocus()
{
    m_provider->setFocus();
}

run::Settings AuthorRows::author() const
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

void AuthorRows::setAuthor(const run::Settings &settings)
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

QString AuthorRows::problem() const
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

void AuthorRows::showFields()
{
    const std::string provider = m_provider->currentData().toString().toStdString();
    const bool isNetwork = llm::needsModel(provider);
    m_form->setRowVisible(m_model, isNetwork);
    m_form->setRowVisible(m_baseUrl, isNetwork);
    m_form->setRowVisible(m_keyRow, isNetwork);
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
