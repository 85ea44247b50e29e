// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/compare/columnpicker.h"

#include <QAction>
#include <QDialogButtonBox>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QVBoxLayout>

namespace klineage::ui {

ColumnPicker::ColumnPicker(const std::vector<CompareColumn> &columns, const QStringList &shown,
                           const Moves &moves, QWidget *parent)
    : QDialog(parent)
    , m_columns(columns)
    , m_filter(new QLineEdit)
    , m_list(new QListWidget)
{
    setWindowTitle(tr("Columns"));
    m_filter->setPlaceholderText(tr("Find a column"));
    m_filter->setAccessibleName(tr("Find a column"));
    m_filter->setClearButtonEnabled(true);
    m_filter->installEventFilter(this);
    m_list->setAccessibleName(tr("Columns: checked ones are shown, from top to bottom"));
    m_list->setDragDropMode(QAbstractItemView::InternalMove);
    addActions({moves.up, moves.down});
    connect(moves.up, &QAction::triggered, this, [this] { move(-1); });
    connect(moves.down, &QAction::triggered, this, [this] { move(1); });
    auto *hint = new QLabel(tr("Space checks; %1 and %2 move a column, or drag it.")
                                .arg(moves.up->shortcut().toString(QKeySequence::NativeText),
                                     moves.down->shortcut().toString(QKeySequence::NativeText)));
    hint->setForegroundRole(QPalette::PlaceholderText);
    hint->setWordWrap(true);
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
    QPushButton *usual = buttons->addButton(tr("&As designed"), QDialogButtonBox::ResetRole);
    usual->setAutoDefault(false);
    connect(usual, &QPushButton::clicked, this, [this] { fill(defaultCompareColumns()); });
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_filter, &QLineEdit::textChanged, this, &ColumnPicker::filter);
    auto *column = new QVBoxLayout(this);
    column->addWidget(m_filter);
    column->addWidget(m_list, 1);
    column->addWidget(hint);
    column->addWidget(buttons);
    resize(380, 560);
    fill(shown);
    m_filter->setFocus();
}

void ColumnPicker::fill(const QStringList &shown)
{
    m_list->clear();
    const auto add = [this](const CompareColumn &column, bool isShown) {
        auto *item = new QListWidgetItem(column.title.compare(column.id, Qt::CaseInsensitive) == 0
                                             ? column.title
                                             : tr("%1   %2").arg(column.title, column.id));
        item->setData(Qt::UserRole, column.id);
        item->setToolTip(column.tip);
        item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable
                       | Qt::ItemIsDragEnabled);
        item->setCheckState(isShown ? Qt::Checked : Qt::Unchecked);
        m_list->addItem(item);
    };
    for (const QString &id : shown) {
        if (const CompareColumn *column = findColumn(m_columns, id))
            add(*column, true);
    }
    for (const CompareColumn &column : m_columns) {
        if (!shown.contains(column.id, Qt::CaseInsensitive))
            add(column, false);
    }
    m_list->setCurrentRow(0);
    filter(m_filter->text());
}

void ColumnPicker::filter(const QString &text)
{
    int first = -1;
    for (int row = 0; row < m_list->count(); ++row) {
        QListWidgetItem *item = m_list->item(row);
        const bool fits = item->text().contains(text.trimmed(), Qt::CaseInsensitive);
        item->setHidden(!fits);
        if (fits && first < 0)
            first = row;
    }
    if (first >= 0 && (!m_list->currentItem() || m_list->currentItem()->isHidden()))
        m_list->setCurrentRow(first);
}

/// Past the next one that the filter shows.
void ColumnPicker::move(int by)
{
    const int from = m_list->currentRow();
    int to = from + by;
    while (to >= 0 && to < m_list->count() && m_list->item(to)->isHidden())
        to += by;
    if (from < 0 || to < 0 || to >= m_list->count())
        return;
    QListWidgetItem *item = m_list->takeItem(from);
    m_list->insertItem(to, item);
    m_list->setCurrentItem(item);
}

QStringList ColumnPicker::chosen() const
{
    QStringList ids;
    for (int row = 0; row < m_list->count(); ++row) {
        const QListWidgetItem *item = m_list->item(row);
        if (item->checkState() == Qt::Checked)
            ids << item->data(Qt::UserRole).toString();
    }
    return ids;
}

bool ColumnPicker::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() != QEvent::KeyPress)
        return QDialog::eventFilter(watched, event);
    const int key = static_cast<QKeyEvent *>(event)->key();
    // From the field into what it found.
    if (watched == m_filter && (key == Qt::Key_Up || key == Qt::Key_Down)) {
        m_list->setFocus();
        return true;
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace klineage::ui
