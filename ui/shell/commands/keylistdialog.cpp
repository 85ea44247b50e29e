// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/commands/keylistdialog.h"

#include "ui/models/fuzzyfilter.h"
#include "ui/shell/commands/actionregistry.h"
#include "ui/shell/commands/keymodel.h"
#include "ui/style/plainwidgets.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

namespace klineage::ui {

KeyListDialog::KeyListDialog(ActionRegistry *registry, QWidget *parent)
    : QDialog(parent)
    , m_registry(registry)
    , m_filter(new FuzzyFilter(this))
    , m_filterField(new QLineEdit)
    , m_table(new QTableView)
    , m_key(new QKeySequenceEdit)
    , m_note(new QLabel)
{
    setWindowTitle(tr("Keys"));
    resize(640, 560);
    auto *model = new KeyModel(registry, this);
    m_filter->setSourceModel(model);
    m_filter->setFilterRole(KeyModel::SearchRole);
    m_table->setModel(m_filter);
    layOut();
    connect(m_filterField, &QLineEdit::textChanged, m_filter, &FuzzyFilter::setPattern);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            &KeyListDialog::showCurrent);
    m_table->selectRow(0);
}

void KeyListDialog::layOut()
{
    m_filterField->setPlaceholderText(tr("Filter commands and keys"));
    m_filterField->setAccessibleName(tr("Filter commands and keys"));
    m_filterField->setClearButtonEnabled(true);
    m_table->setAccessibleName(tr("Commands and their keys"));
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setShowGrid(false);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
    m_table->horizontalHeader()->setSectionResizeMode(KeyModel::CommandColumn, QHeaderView::Stretch);
    m_table->setColumnWidth(KeyModel::KeyColumn, 150);
    m_table->setColumnWidth(KeyModel::ScopeColumn, 160);
    makePlainHeader(m_table->horizontalHeader());
    m_note->setWordWrap(true);
    m_note->setForegroundRole(QPalette::PlaceholderText);
    m_key->setAccessibleName(tr("New key"));

    auto *assignButton = new QPushButton(tr("Assign"));
    auto *defaultButton = new QPushButton(tr("Default"));
    auto *resetButton = new QPushButton(tr("Reset all"));
    for (QPushButton *button : {assignButton, defaultButton, resetButton})
        button->setAutoDefault(false);
    connect(assignButton, &QPushButton::clicked, this, &KeyListDialog::assign);
    connect(defaultButton, &QPushButton::clicked, this, &KeyListDialog::useDefault);
    connect(resetButton, &QPushButton::clicked, this, [this] {
        m_registry->resetKeys();
        showCurrent();
    });

    auto *row = new QHBoxLayout;
    row->addWidget(new QLabel(tr("Key")));
    row->addWidget(m_key, 1);
    row->addWidget(assignButton);
    row->addWidget(defaultButton);
    row->addSpacing(16);
    row->addWidget(resetButton);
    auto *layout = new QVBoxLayout(this);
    layout->addWidget(m_filterField);
    layout->addWidget(m_table, 1);
    layout->addLayout(row);
    layout->addWidget(m_note);
}

QString KeyListDialog::currentId() const
{
    return m_table->currentIndex().data(KeyModel::IdRole).toString();
}

void KeyListDialog::showCurrent()
{
    m_confirmedId.clear();
    const auto *entry = std::as_const(*m_registry).find(currentId());
    m_key->setEnabled(entry != nullptr);
    m_key->setKeySequence(entry ? entry->action->shortcut() : QKeySequence());
    m_note->setText(
        entry ? tr(
            "Press the new key in the field, then Assign. An empty field leaves the command without a key.")
              : QString());
}

void KeyListDialog::assign()
{
    const QString id = currentId();
    const QStringList taken = m_registry->conflicts(id, m_key->keySequence());
    if (!taken.isEmpty() && m_confirmedId != id) {
        m_confirmedId = id;
        m_note->setText(tr("%1 is the key of %2. Press Assign again to move it here.")
                            .arg(m_key->keySequence().toString(QKeySequence::NativeText),
                                 taken.join(QStringLiteral(", "))));
        return;
    }
    const QKeySequence key = m_key->keySequence();
    for (const QString &other : taken)
        m_registry->setKey(other, {});
    m_registry->setKey(id, key);
    showCurrent();
}

void KeyListDialog::useDefault()
{
    if (const auto *entry = std::as_const(*m_registry).find(currentId())) {
        m_registry->setKey(entry->id(), entry->defaultKey);
        showCurrent();
    }
}

} // namespace klineage::ui
