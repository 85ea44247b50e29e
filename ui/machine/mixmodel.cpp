// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/mixmodel.h"

#include "ui/style/format.h"

#include <QStringList>

#include <algorithm>
#include <cstdlib>

namespace klineage::ui {

namespace {

QString className(std::size_t opcode)
{
    return MixModel::tr(opcodeClasses()[opcode].name);
}

QString signedCount(qint64 change)
{
    return change > 0 ? QLatin1Char('+') + formatCount(change) : formatCount(change);
}

} // namespace

std::optional<qint64> MixModel::Row::change() const
{
    return left && right ? std::optional<qint64>(*right - *left) : std::nullopt;
}

void MixModel::setSides(const MachineCode *left, const QString &leftName, const MachineCode *right,
                        const QString &rightName)
{
    beginResetModel();
    m_leftName = leftName;
    m_rightName = rightName;
    m_rows.clear();
    for (std::size_t i = 0; i < opcodeClassCount; ++i) {
        Row row{i, {}, {}};
        if (left)
            row.left = left->mix[i];
        if (right)
            row.right = right->mix[i];
        if (row.left.value_or(0) > 0 || row.right.value_or(0) > 0)
            m_rows.push_back(row);
    }
    endResetModel();
}

QString MixModel::inOneLine() const
{
    if (m_rows.empty())
        return {};
    std::vector<Row> rows = m_rows;
    const auto weight = [](const Row &row) {
        return row.change() ? std::llabs(*row.change()) : row.right.value_or(row.left.value_or(0));
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&weight](const Row &a, const Row &b) { return weight(a) > weight(b); });
    QStringList parts;
    for (const Row &row : rows) {
        if (!row.change())
            parts << tr("%1 %2").arg(className(row.opcode),
                                     formatCount(row.right.value_or(row.left.value_or(0))));
        else if (*row.change() != 0)
            parts << tr("%1 %2 → %3 (%4)")
                         .arg(className(row.opcode), formatCount(*row.left), formatCount(*row.right),
                              signedCount(*row.change()));
    }
    if (parts.isEmpty())
        return tr("Static count, not executed: both sides have the same number of every class.");
    const QString list = parts.join(QStringLiteral(" · "));
    if (!rows.front().change())
        return tr("Static count, not executed, of %1 alone: %2")
            .arg(rows.front().right ? m_rightName : m_leftName, list);
    return tr("Static count, not executed: %1").arg(list);
}

int MixModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int MixModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(ColumnCount);
}

std::optional<qint64> MixModel::number(const Row &row, int column)
{
    return column == LeftColumn ? row.left : column == RightColumn ? row.right : row.change();
}

QVariant MixModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Row &row = m_rows[static_cast<std::size_t>(index.row())];
    const int column = index.column();
    if (role == Qt::TextAlignmentRole)
        return column >= LeftColumn ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant();
    if (role == Qt::ToolTipRole)
        return tr("Counted in the text: an instruction of a loop once, however often it runs.");
    if (role != Qt::DisplayRole && role != Qt::EditRole)
        return {};
    if (column == ClassColumn)
        return className(row.opcode);
    if (column == ExamplesColumn)
        return QString::fromUtf8(opcodeClasses()[row.opcode].examples);
    const std::optional<qint64> count = number(row, column);
    if (!count)
        return role == Qt::EditRole ? QVariant(QString()) : QVariant(QStringLiteral("–"));
    if (role == Qt::EditRole)
        return *count;
    return column == ChangeColumn ? signedCount(*count) : formatCount(*count);
}

QVariant MixModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return section >= LeftColumn ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                                     : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case ClassColumn:
        return tr("Instructions, static count");
    case ExamplesColumn:
        return tr("SASS · PTX");
    case LeftColumn:
        return m_leftName;
    case RightColumn:
        return m_rightName;
    default:
        return tr("Difference");
    }
}

} // namespace klineage::ui
