// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/table/plottable.h"

#include "ui/style/format.h"

#include <algorithm>

namespace klineage::ui {

PlotTable::Cell PlotTable::speedup(double value)
{
    return value > 0 ? Cell(value, formatSpeedup(value)) : Cell();
}

void PlotTableModel::setTable(PlotTable table)
{
    beginResetModel();
    m_table = std::move(table);
    endResetModel();
}

int PlotTableModel::rowOf(const QString &id) const
{
    const auto found = std::find_if(m_table.rows.begin(), m_table.rows.end(),
                                    [&id](const PlotTable::Row &row) { return row.id == id; });
    return id.isEmpty() || found == m_table.rows.end() ? -1 : static_cast<int>(found - m_table.rows.begin());
}

int PlotTableModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_table.rows.size());
}

int PlotTableModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_table.columns.size());
}

QVariant PlotTableModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const PlotTable::Row &row = m_table.rows[static_cast<std::size_t>(index.row())];
    const auto column = static_cast<std::size_t>(index.column());
    const PlotTable::Cell &cell = row.cells[column];
    switch (role) {
    case Qt::DisplayRole:
        return cell.text.isNull() ? QStringLiteral("–") : cell.text;
    case Qt::EditRole:
        return cell.value.isValid() ? cell.value : QVariant(cell.text);
    case Qt::TextAlignmentRole:
        return QVariant(Qt::AlignVCenter
                        | (m_table.columns[column].isFigure ? Qt::AlignRight : Qt::AlignLeft));
    case IdRole:
        return row.id;
    default:
        return {};
    }
}

QVariant PlotTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount())
        return {};
    const PlotTable::Column &column = m_table.columns[static_cast<std::size_t>(section)];
    switch (role) {
    case Qt::DisplayRole:
        return column.title;
    case Qt::EditRole:
        return column.plain.isEmpty() ? column.title : column.plain;
    case Qt::TextAlignmentRole:
        return QVariant(Qt::AlignVCenter | (column.isFigure ? Qt::AlignRight : Qt::AlignLeft));
    default:
        return {};
    }
}

} // namespace klineage::ui
