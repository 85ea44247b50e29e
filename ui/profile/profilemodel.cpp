// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/profilemodel.h"

#include "ui/style/format.h"

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

/// Percentages change by points; everything else by a ratio, or by an amount when it starts at zero.
QString changeText(const ProfileRow &row)
{
    const auto absolute = row.absoluteChange();
    if (!absolute)
        return {};
    if (*absolute == 0)
        return QStringLiteral("=");
    if (row.unit == QLatin1String("%"))
        return formatPoints(*absolute);
    if (const auto relative = row.relativeChange())
        return *relative > 9.995 ? formatSpeedup(*relative + 1.0) : formatPercent(*relative);
    return formatSigned(*absolute, row.unit);
}

/// A tenfold change fills the bar; smaller ones are drawn in proportion to their logarithm.
double barOf(const ProfileRow &row)
{
    return std::min(1.0, row.magnitude() / std::log(10.0));
}

} // namespace

void ProfileModel::setSides(const gate::Trial *left, const QString &leftName, const gate::Trial *right,
                            const QString &rightName)
{
    beginResetModel();
    m_leftName = leftName;
    m_rightName = rightName;
    m_rows = profileDelta(left, right);
    m_texts.clear();
    for (const ProfileRow &row : m_rows) {
        Texts texts;
        texts.left = row.left ? formatQuantity(*row.left, row.unit) : QStringLiteral("–");
        texts.right = row.right ? formatQuantity(*row.right, row.unit) : QStringLiteral("–");
        texts.change = changeText(row);
        texts.bar = barOf(row);
        m_texts.push_back(std::move(texts));
    }
    endResetModel();
}

int ProfileModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int ProfileModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ProfileModel::data(const QModelIndex &index, int role) const
{
    if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid))
        return {};
    const ProfileRow &row = m_rows[static_cast<std::size_t>(index.row())];
    const Texts &texts = m_texts[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        switch (index.column()) {
        case MetricColumn:
            return row.label;
        case LeftColumn:
            return texts.left;
        case RightColumn:
            return texts.right;
        case ChangeColumn:
            return texts.change;
        default:
            return {};
        }
    case Qt::TextAlignmentRole:
        return static_cast<int>(Qt::AlignVCenter
                                | (index.column() == MetricColumn ? Qt::AlignLeft : Qt::AlignRight));
    case Qt::ToolTipRole:
        return row.note.isEmpty() ? row.label : tr("%1 (%2)").arg(row.label, row.note);
    case DirectionRole:
        return row.direction();
    case BarRole:
        return texts.bar;
    case NumberRole:
        if (index.column() == LeftColumn && row.left)
            return *row.left;
        if (index.column() == RightColumn && row.right)
            return *row.right;
        return {};
    default:
        return {};
    }
}

QVariant ProfileModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter
                                | (section == MetricColumn ? Qt::AlignLeft : Qt::AlignRight));
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case MetricColumn:
        return tr("Metric");
    case LeftColumn:
        return m_leftName;
    case RightColumn:
        return m_rightName;
    case ChangeColumn:
        return tr("Δ");
    default:
        return QString();
    }
}

} // namespace klineage::ui
