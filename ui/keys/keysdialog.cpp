// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/keys/keysdialog.h"

#include "ui/keys/keyring.h"

#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

constexpr int longestKey = 4096;

QString stateText(KeyState state, const QString &provider)
{
    const bool inEnvironment = KeyRing::isInEnvironment(provider);
    switch (state) {
    case KeyState::Unknown:
    case KeyState::Asking:
        return KeysDialog::tr("Asking the keychain…");
    case KeyState::Stored:
        return KeysDialog::tr("✓ In the keychain");
    case KeyState::Absent:
    case KeyState::Unavailable:
        break;
    }
    return inEnvironment ? KeysDialog::tr("From %1").arg(KeyRing::variable(provider))
                         : KeysDialog::tr("None; %1 is not set").arg(KeyRing::variable(provider));
}

} // namespace

KeysDialog::KeysDialog(KeyRing *keys, QWidget *parent)
    : QDialog(parent)
    , m_keys(keys)
    , m_note(new QLabel)
{
    setWindowTitle(tr("API keys"));
    auto *intro =
        new QLabel(tr("A key is looked for in the keychain of this desktop first, then in the environment. "
                      "It is sent to its provider only, and shown or written nowhere."));
    intro->setWordWrap(true);
    auto *grid = new QGridLayout;
    grid->setHorizontalSpacing(10);
    grid->setVerticalSpacing(8);
    grid->setColumnStretch(2, 1);
    for (const QString &provider : KeyRing::providers())
        addRow(grid, provider);
    m_note->setWordWrap(true);
    m_note->setMinimumHeight(fontMetrics().lineSpacing() * 3);
    m_note->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_note->setAccessibleName(tr("What the keychain says"));
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close);
    // Return in a field stores the key, and closes nothing.
    buttons->button(QDialogButtonBox::Close)->setAutoDefault(false);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto *layout = new QVBoxLayout(this);
    layout->setSpacing(12);
    layout->addWidget(intro);
    layout->addLayout(grid);
    layout->addWidget(m_note);
    layout->addWidget(buttons);
    setMinimumWidth(660);
    connect(keys, &KeyRing::changed, this, &KeysDialog::refresh);
    for (const Row &row : m_rows)
        keys->look(row.provider);
    refresh();
}

void KeysDialog::addRow(QGridLayout *grid, const QString &provider)
{
    const Row row{provider, new QLabel, new QLineEdit, new QPushButton(tr("Store")),
                  new QPushButton(tr("Remove"))};
    auto *name = new QLabel(provider);
    name->setBuddy(row.field);
    row.field->setEchoMode(QLineEdit::Password);
    row.field->setMaxLength(longestKey);
    row.field->setPlaceholderText(tr("paste a key"));
    row.field->setAccessibleName(tr("Key of %1").arg(provider));
    row.state->setAccessibleName(tr("Where the key of %1 comes from").arg(provider));
    row.store->setAccessibleName(tr("Store the key of %1").arg(provider));
    row.remove->setAccessibleName(tr("Remove the key of %1").arg(provider));
    for (QPushButton *button : {row.store, row.remove})
        button->setAutoDefault(false);
    row.store->setEnabled(false);
    const int line = grid->rowCount();
    int column = 0;
    for (QWidget *widget :
         std::initializer_list<QWidget *>{name, row.state, row.field, row.store, row.remove})
        grid->addWidget(widget, line, column++);
    m_rows.push_back(row);
    connect(row.field, &QLineEdit::textChanged, row.store,
            [row](const QString &text) { row.store->setEnabled(!text.trimmed().isEmpty()); });
    connect(row.field, &QLineEdit::returnPressed, this, [this, row] { storeKey(row); });
    connect(row.store, &QPushButton::clicked, this, [this, row] { storeKey(row); });
    connect(row.remove, &QPushButton::clicked, this, [this, row] { m_keys->remove(row.provider); });
}

void KeysDialog::storeKey(const Row &row)
{
    const QString problem = m_keys->store(row.provider, row.field->text());
    row.field->setText({}); // which also forgets what could be undone
    if (!problem.isEmpty())
        m_note->setText(problem);
}

void KeysDialog::refresh()
{
    bool unavailable = false;
    for (const Row &row : m_rows) {
        const KeyState state = m_keys->state(row.provider);
        row.state->setText(stateText(state, row.provider));
        row.remove->setEnabled(state == KeyState::Stored);
        row.field->setEnabled(state == KeyState::Stored || state == KeyState::Absent);
        unavailable = unavailable || state == KeyState::Unavailable;
    }
    const QString problem = m_keys->problem();
    m_note->setText(unavailable ? tr("%1 Keys are taken from the environment alone.").arg(problem) : problem);
}

} // namespace klineage::ui
