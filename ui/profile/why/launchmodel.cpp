// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/why/launchmodel.h"

#include "ui/profile/profiledelta.h"

#include <QFont>

namespace klineage::ui {

namespace {

QString cellText(const gate::LaunchCell &cell, const std::string &unit)
{
    return cell.value ? profileFigure(*cell.value, QString::fromStdString(unit))
                      : QString::fromStdString(cell.text);
}

QVariant cellValue(const gate::LaunchCell &cell)
{
    return cell.value ? QVariant(*cell.value) : QVariant(QString::fromStdString(cell.text));
}

} // namespace

void LaunchModel::setSides(const std::vector<gate::LaunchNumbers> &left, const QString &leftName,
                           const std::vector<gate::LaunchNumbers> &right, const QString &rightName)
{
    beginResetModel();
    m_leftName = leftName;
    m_rightName = rightName;
    m_lines.clear();
    const bool hasHeadings = left.size() > 1 || right.size() > 1;
    std::string kernel;
    for (const gate::LaunchRow &row : gate::launchRows(left, right)) {
        if (hasHeadings && (row.kernel != kernel || m_lines.empty())) {
            kernel = row.kernel;
            m_lines.push_back({QString::fromStdString(kernel), {}, {}, {}, {}, false, true});
        }
        m_lines.push_back({QString::fromStdString(row.label), cellText(row.before, row.unit),
                           cellText(row.after, row.unit), cellValue(row.before), cellValue(row.after),
                           row.differs, false});
    }
    endResetModel();
}

int LaunchModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int LaunchModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant LaunchModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const Line &line = m_lines[static_cast<std::size_t>(index.row())];
    const int column = index.column();
    switch (role) {
    case Qt::DisplayRole:
        return column == FigureColumn  ? line.label
               : column == LeftColumn  ? line.left
               : column == RightColumn ? line.right
               : line.differs          ? QStringLiteral("≠")
                                       : QString();
    case Qt::EditRole:
        return column == LeftColumn    ? line.leftValue
               : column == RightColumn ? line.rightValue
                                       : data(index, Qt::DisplayRole);
    case Qt::FontRole:
        if (!line.isHeading && !(line.differs && column != FigureColumn))
            return {};
        {
            QFont bold;
            bold.setBold(true);
            return bold;
        }
    case Qt::ToolTipRole:
        return line.differs ? tr("%1: the two sides differ").arg(line.label) : QVariant();
    case Qt::TextAlignmentRole:
        return static_cast<int>(Qt::AlignVCenter | (column == FigureColumn ? Qt::AlignLeft : Qt::AlignRight));
    default:
        return {};
    }
}

QVariant LaunchModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter
                                | (section == FigureColumn ? Qt::AlignLeft : Qt::AlignRight));
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case FigureColumn:
        return tr("Launch");
    case LeftColumn:
        return m_leftName;
    case RightColumn:
        return m_rightName;
    default:
        return QStringLiteral("≠");
    }
}

} // namespace klineage::ui
