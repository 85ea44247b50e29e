// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/lineagemodel.h"

#include <QSet>

#include <algorithm>

namespace klineage::ui {

namespace {

std::vector<QString> idsOf(const std::vector<LineageRow> &rows)
{
    std::vector<QString> ids;
    for (const LineageRow &row : rows)
        ids.push_back(row.id);
    return ids;
}

/// "fa3" of "fa3/attention_varlen": the tool tip has the whole name.
QString shortReference(const QString &name)
{
    return name.section(QLatin1Char('/'), 0, 0);
}

QVariant optionalNumber(const std::optional<double> &number)
{
    return number ? QVariant(*number) : QVariant();
}

} // namespace

void LineageModel::refresh(const lineage::Lineage *lineage, const QString &baseline, Direction direction)
{
    LineageRows fresh = lineage ? makeLineageRows(*lineage, baseline, direction) : LineageRows{};
    const QString key = lineage ? QString::fromStdString(lineage->key()) : QString();
    if (key != m_key || direction != m_direction) {
        beginResetModel();
        m_key = key;
        m_direction = direction;
        m_rows = std::move(fresh);
        endResetModel();
        return;
    }
    const bool headerDiffers = fresh.baseline != m_rows.baseline || fresh.reference != m_rows.reference
                               || fresh.unit.symbol != m_rows.unit.symbol || fresh.device != m_rows.device;
    m_rows.unit = fresh.unit;
    m_rows.device = fresh.device;
    m_rows.baseline = fresh.baseline;
    m_rows.reference = fresh.reference;
    merge(std::move(fresh.rows));
    if (headerDiffers)
        emit headerDataChanged(Qt::Horizontal, 0, ColumnCount - 1);
}

/// Removes what is gone, inserts what is new, and tells which rows changed. Rows that stayed keep their order: the store only
/// appends; should a person have reordered the file by hand, the rows are replaced.
void LineageModel::merge(std::vector<LineageRow> fresh)
{
    std::vector<LineageRow> &rows = m_rows.rows;
    QSet<QString> freshIds;
    for (const LineageRow &row : fresh)
        freshIds.insert(row.id);
    for (int i = static_cast<int>(rows.size()) - 1; i >= 0; --i) {
        if (freshIds.contains(rows[static_cast<std::size_t>(i)].id))
            continue;
        beginRemoveRows({}, i, i);
        rows.erase(rows.begin() + i);
        endRemoveRows();
    }
    for (std::size_t i = 0; i < fresh.size(); ++i) {
        if (i < rows.size() && rows[i].id == fresh[i].id)
            continue;
        if (rowOf(fresh[i].id) >= 0)
            break;
        const int at = static_cast<int>(i);
        beginInsertRows({}, at, at);
        rows.insert(rows.begin() + at, fresh[i]);
        endInsertRows();
    }
    if (idsOf(rows) != idsOf(fresh)) {
        beginResetModel();
        rows = std::move(fresh);
        endResetModel();
        return;
    }
    for (std::size_t i = 0; i < fresh.size(); ++i) {
        if (rows[i] == fresh[i])
            continue;
        rows[i] = std::move(fresh[i]);
        emit dataChanged(index(static_cast<int>(i), 0), index(static_cast<int>(i), ColumnCount - 1));
    }
}

int LineageModel::rowOf(const QString &id) const
{
    const auto found = std::find_if(m_rows.rows.begin(), m_rows.rows.end(),
                                    [&id](const LineageRow &row) { return row.id == id; });
    return found == m_rows.rows.end() ? -1 : static_cast<int>(found - m_rows.rows.begin());
}

QString LineageModel::neighbourState(const QString &id, int step) const
{
    const int start = rowOf(id);
    if (start < 0)
        return {};
    for (int i = start + step; i >= 0 && i < rowCount(); i += step) {
        if (row(i).kind == lineage::TableRow::Kind::State)
            return row(i).id;
    }
    return {};
}

int LineageModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.rows.size());
}

int LineageModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant LineageModel::text(const LineageRow &row, int column) const
{
    switch (column) {
    case StepColumn:
        return row.label.isEmpty() ? row.title : row.label + QStringLiteral("  ") + row.title;
    case GateColumn:
        return row.verdict ? row.verdict->word : row.instead;
    case LatencyColumn:
        return row.instead.isEmpty() ? row.latency : row.instead;
    case ChangeColumn:
        return row.step;
    case BaselineColumn:
        return row.toBaseline;
    case ReferenceColumn:
        return row.toReference;
    default:
        return {};
    }
}

QVariant LineageModel::number(const LineageRow &row, int column) const
{
    switch (column) {
    case LatencyColumn:
        return optionalNumber(row.latencyNs);
    case ChangeColumn:
        return optionalNumber(row.stepSpeedup);
    case BaselineColumn:
        return optionalNumber(row.baselineSpeedup);
    case ReferenceColumn:
        return optionalNumber(row.referenceSpeedup);
    default:
        return {};
    }
}

QVariant LineageModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const LineageRow &shown = row(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return text(shown, index.column());
    case Qt::ToolTipRole:
    case Qt::AccessibleDescriptionRole:
        return shown.tooltip;
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(
            Qt::Alignment(index.column() == StepColumn ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case IdRole:
        return shown.id;
    case NumberRole:
    case Qt::EditRole:
        return number(shown, index.column());
    default:
        return {};
    }
}

QVariant LineageModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(Qt::Alignment(section == StepColumn ? Qt::AlignLeft : Qt::AlignRight)
                                   | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) {
        switch (section) {
        case GateColumn:
            return tr("Stages of the gate: compile, correctness, profile");
        case LatencyColumn:
            return (m_rows.device.isEmpty()
                        ? tr("Median latency of the timed case")
                        : tr("Median latency of the timed case on %1; what ran elsewhere says where")
                              .arg(m_rows.device))
                   + QLatin1Char('\n')
                   + tr("! The machine was busy or its clock moved: the row's tool tip says how far.");
        case ChangeColumn:
            return tr("Change of latency against the parent, from paired rounds");
        case BaselineColumn:
            return tr("Speedup to %1, not paired: the ratio of the medians of two trials")
                .arg(m_rows.baseline);
        case ReferenceColumn:
            return tr("Speedup to the vendor reference %1, from paired rounds; a row with another name was timed "
                      "beside that one")
                .arg(m_rows.reference);
        default:
            return {};
        }
    }
    if (role == Qt::EditRole) {
        switch (section) {
        case LatencyColumn:
            return QStringLiteral("latency_ns");
        case ChangeColumn:
            return QStringLiteral("speedup_to_parent_paired");
        case BaselineColumn:
            return QStringLiteral("speedup_to_%1_unpaired").arg(m_rows.baseline);
        case ReferenceColumn:
            return QStringLiteral("speedup_to_%1_paired").arg(m_rows.reference);
        default:
            return {};
        }
    }
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case StepColumn:
        return tr("step");
    case GateColumn:
        return tr("gate");
    case LatencyColumn:
        return m_rows.unit.symbol;
    case ChangeColumn:
        return tr("Δ step");
    case BaselineColumn:
        return m_rows.baseline.isEmpty() ? tr("≈ vs K0") : tr("≈ vs %1").arg(m_rows.baseline);
    case ReferenceColumn:
        return m_rows.reference.isEmpty() ? tr("vendor") : tr("vs %1").arg(shortReference(m_rows.reference));
    default:
        return {};
    }
}

} // namespace klineage::ui
