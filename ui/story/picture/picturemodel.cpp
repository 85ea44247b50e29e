// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/picturemodel.h"

#include <algorithm>

namespace klineage::ui {

namespace {

bool isSameRow(const PictureTable::Row &a, const PictureTable::Row &b)
{
    return a.item == b.item
           && std::equal(a.cells.begin(), a.cells.end(), b.cells.begin(), b.cells.end(),
                         [](const auto &x, const auto &y) { return x.text == y.text && x.value == y.value; });
}

} // namespace

void PictureModel::setTable(PictureTable table)
{
    const std::size_t before = m_table.rows.size();
    const bool isGrown =
        before > 0 && table.headers == m_table.headers && table.rows.size() >= before
        && std::equal(m_table.rows.begin(), m_table.rows.end(), table.rows.begin(), isSameRow);
    if (!isGrown) {
        beginResetModel();
        m_table = std::move(table);
        endResetModel();
        return;
    }
    if (table.rows.size() == before)
        return;
    beginInsertRows({}, static_cast<int>(before), static_cast<int>(table.rows.size()) - 1);
    m_table = std::move(table);
    endInsertRows();
}

int PictureModel::rowOf(int item) const
{
    if (item < 0)
        return -1;
    const auto found = std::find_if(m_table.rows.begin(), m_table.rows.end(),
                                    [item](const PictureTable::Row &row) { return row.item == item; });
    return found == m_table.rows.end() ? -1 : static_cast<int>(found - m_table.rows.begin());
}

int PictureModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_table.rows.size());
}

int PictureModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_table.headers.size());
}

QVariant PictureModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const PictureTable::Row &row = m_table.rows[static_cast<std::size_t>(index.row())];
    if (role == ItemRole)
        return row.item;
    if (static_cast<std::size_t>(index.column()) >= row.cells.size())
        return {};
    const PictureTable::Cell &cell = row.cells[static_cast<std::size_t>(index.column())];
    switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole:
        return cell.text;
    case Qt::EditRole:
        return cell.value.isValid() ? cell.value : QVariant(cell.text);
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(Qt::Alignment(cell.value.isValid() ? Qt::AlignRight : Qt::AlignLeft)
                                   | Qt::AlignVCenter);
    default:
        return {};
    }
}

QVariant PictureModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section >= m_table.headers.size())
        return {};
    if (role == Qt::DisplayRole)
        return m_table.headers[section];
    if (role == Qt::EditRole)
        return section < m_table.names.size() ? m_table.names[section] : m_table.headers[section];
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(Qt::AlignLeft) | Qt::AlignVCenter);
    return {};
}

} // namespace klineage::ui
