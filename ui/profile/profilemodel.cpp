// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/profilemodel.h"

#include "ui/models/disturbancetext.h"
#include "ui/style/format.h"

#include <QStringList>

#include <algorithm>

namespace klineage::ui {

namespace {

/// Percentages change by points; everything else by a ratio, where there is one.
QString sizeText(const ProfileRow &row)
{
    const auto absolute = row.absoluteChange();
    if (!absolute)
        return {};
    if (row.unit == QLatin1String("%"))
        return formatPoints(*absolute);
    if (const auto relative = row.relativeChange())
        return *relative > 9.995 ? formatSpeedup(*relative + 1.0) : formatPercent(*relative);
    return ProfileModel::tr("from 0");
}

/// "≈" before what was not paired though it is a time, "~" before what may be no change at all.
QString changeText(const ProfileRow &row)
{
    const auto absolute = row.absoluteChange();
    if (absolute && *absolute == 0 && !row.pairedRatio)
        return QStringLiteral("=");
    QString text = sizeText(row);
    if (text.isEmpty())
        return text;
    if (row.kind == ProfileRow::Kind::Timed)
        text = QStringLiteral("≈ ") + text;
    return row.isNoise() ? QStringLiteral("~ ") + text : text;
}

QString tipOf(const ProfileRow &row)
{
    QStringList lines{row.note.isEmpty() ? row.label : ProfileModel::tr("%1 (%2)").arg(row.label, row.note)};
    if (row.pairedRatio)
        lines << ProfileModel::tr("95 % interval of the change: %1 to %2")
                     .arg(formatPercent(row.pairedRatio->low - 1), formatPercent(row.pairedRatio->high - 1));
    if (row.kind == ProfileRow::Kind::Bookkeeping)
        lines << ProfileModel::tr("How the profiler looked, not what it saw.");
    else if (row.isNoise())
        lines << ProfileModel::tr("No larger than such figures vary by themselves.");
    return lines.join(QLatin1Char('\n'));
}

bool isOfTheTime(const ProfileRow &row)
{
    return row.name == QLatin1String("latency") || row.name == QLatin1String("flops")
           || row.name == QLatin1String("bytes");
}

/// What beside the kernel had a part in the times of a trial.
QStringList disturbancesIn(const gate::Trial &trial, const QString &name)
{
    QStringList says;
    for (const gate::Disturbance &disturbance : gate::disturbancesOf(trial))
        says << QStringLiteral("%1: %2").arg(name, disturbanceInWords(disturbance));
    return says;
}

} // namespace

void ProfileModel::setSides(const gate::Trial *left, const QString &leftName, const gate::Trial *right,
                            const QString &rightName, const gate::Comparison *paired)
{
    beginResetModel();
    m_leftName = leftName;
    m_rightName = rightName;
    m_rows = profileDelta(left, right, paired);
    m_texts.clear();
    m_hasLeft =
        std::any_of(m_rows.begin(), m_rows.end(), [](const ProfileRow &row) { return row.left.has_value(); });
    QStringList disturbed;
    if (right)
        disturbed += disturbancesIn(*right, rightName);
    if (left && !paired)
        disturbed += disturbancesIn(*left, leftName);
    for (const ProfileRow &row : m_rows) {
        Texts texts;
        texts.left = row.left ? profileFigure(*row.left, row.unit) : QStringLiteral("–");
        texts.right = row.right ? profileFigure(*row.right, row.unit) : QStringLiteral("–");
        texts.change = changeText(row);
        texts.tip = tipOf(row);
        if (row.left)
            texts.tip +=
                QLatin1Char('\n') + tr("%1: %2 · %3: %4").arg(leftName, texts.left, rightName, texts.right);
        if (!disturbed.isEmpty() && isOfTheTime(row))
            texts.tip += QLatin1Char('\n') + disturbed.join(QLatin1Char('\n'));
        texts.bar = row.impact();
        m_texts.push_back(std::move(texts));
    }
    endResetModel();
}

void ProfileModel::setHidden(bool left, bool right)
{
    if (left == m_isLeftHidden && right == m_isRightHidden)
        return;
    m_isLeftHidden = left;
    m_isRightHidden = right;
    emit headerDataChanged(Qt::Horizontal, MetricColumn, MetricColumn);
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
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
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
        return texts.tip;
    case DirectionRole:
        return row.direction();
    case BarRole:
        return texts.bar;
    case NumberRole:
    case Qt::EditRole:
        if (index.column() == ChangeColumn && role == Qt::EditRole && row.relativeChange())
            return *row.relativeChange();
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
    if (role == Qt::ToolTipRole && section == ChangeColumn)
        return tr("≈ was not measured side by side; ~ is no larger than such figures vary by themselves");
    const bool saysWhere = section == MetricColumn && m_isLeftHidden && m_hasLeft;
    if (role == Qt::ToolTipRole && saysWhere)
        return tr("The figures of %1 have no room here: they are in the tool tips, and in a wider panel")
            .arg(m_isRightHidden ? tr("%1 and %2").arg(m_leftName, m_rightName) : m_leftName);
    if (role == Qt::EditRole && section == ChangeColumn)
        return QStringLiteral("relative_change");
    if (role == Qt::EditRole && section == MetricColumn)
        return tr("Metric");
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case MetricColumn:
        if (!saysWhere)
            return tr("Metric");
        return m_isRightHidden ? tr("Metric …") : tr("Metric · %1 in tool tips").arg(m_leftName);
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
