// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/importmodel.h"

#include "ui/style/status.h"

namespace klineage::ui {

void ImportModel::setReport(const ImportReport &report, bool isTrial)
{
    beginResetModel();
    m_report = report;
    m_isTrial = isTrial;
    endResetModel();
}

int ImportModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_report.entries.size());
}

int ImportModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ImportModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const ImportedEntry &entry = m_report.entries[static_cast<std::size_t>(index.row())];
    const bool isTaken = !entry.name.isEmpty();
    const bool isRow = entry.part != ImportedEntry::Part::Whole;
    if (role == Qt::ForegroundRole && index.column() == StateColumn && !isRow)
        return toneColor(isTaken ? Tone::Good : Tone::Warn);
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole)
        return {};
    switch (index.column()) {
    case StateColumn:
        if (isRow)
            return entry.part == ImportedEntry::Part::State ? tr("as a state") : tr("as an attempt");
        return !isTaken ? tr("– skipped") : m_isTrial ? tr("✓ would come in") : tr("✓ imported");
    case NameColumn:
        return entry.name;
    case SourceColumn:
        return entry.source;
    default:
        return isTaken
                   ? entry.notes.join(role == Qt::ToolTipRole ? QStringLiteral("\n") : QStringLiteral(" · "))
                   : entry.reason;
    }
}

QVariant ImportModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft);
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case StateColumn:
        return tr("What became of it");
    case NameColumn:
        return tr("Name here");
    case SourceColumn:
        return tr("From");
    default:
        return tr("Why, and what was left out or chosen");
    }
}

} // namespace klineage::ui
