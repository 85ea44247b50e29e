// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/commands/keymodel.h"

#include "ui/shell/commands/actionregistry.h"

#include <QFont>

#include <algorithm>

namespace klineage::ui {

KeyModel::KeyModel(ActionRegistry *registry, QObject *parent)
    : QAbstractTableModel(parent)
    , m_registry(registry)
    , m_rows(makeRows())
{
    connect(registry, &ActionRegistry::keysChanged, this, &KeyModel::refresh);
}

std::vector<KeyModel::Row> KeyModel::makeRows() const
{
    std::vector<Row> rows;
    for (const ActionRegistry::Entry &entry : m_registry->entries()) {
        QString text = entry.action->text();
        text.remove(QLatin1Char('&'));
        rows.push_back({entry.id(), entry.group + QStringLiteral(": ") + text,
                        entry.action->shortcut().toString(QKeySequence::NativeText),
                        entry.isWindowWide() ? tr("everywhere")
                        : entry.isPaneWide() ? tr("a list, graph or diff has the focus")
                                             : tr("%1 has the focus").arg(entry.group),
                        entry.action->shortcut() != entry.defaultKey});
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row &a, const Row &b) { return a.command.localeAwareCompare(b.command) < 0; });
    return rows;
}

void KeyModel::refresh()
{
    std::vector<Row> rows = makeRows();
    if (rows.size() != m_rows.size()) {
        beginResetModel();
        m_rows = std::move(rows);
        endResetModel();
        return;
    }
    m_rows = std::move(rows);
    if (!m_rows.empty())
        emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

int KeyModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int KeyModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant KeyModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const Row &row = m_rows[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return index.column() == CommandColumn ? row.command
               : index.column() == KeyColumn   ? row.key
                                               : row.scope;
    case Qt::FontRole:
        if (row.isChanged && index.column() == KeyColumn) {
            QFont changed;
            changed.setWeight(QFont::DemiBold);
            return changed;
        }
        return {};
    case IdRole:
        return row.id;
    case SearchRole:
        return QString(row.command + QLatin1Char(' ') + row.key);
    default:
        return {};
    }
}

QVariant KeyModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(Qt::AlignLeft | Qt::AlignVCenter));
    if (role != Qt::DisplayRole)
        return {};
    return section == CommandColumn ? tr("command") : section == KeyColumn ? tr("key") : tr("acts when");
}

} // namespace klineage::ui
