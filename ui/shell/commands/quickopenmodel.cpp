// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/commands/quickopenmodel.h"

#include "ui/models/fuzzymatch.h"

#include <algorithm>
#include <tuple>

namespace klineage::ui {

void QuickOpenModel::setEntries(std::vector<QuickEntry> entries)
{
    beginResetModel();
    m_entries = std::move(entries);
    rank();
    endResetModel();
}

void QuickOpenModel::setPattern(const QString &pattern)
{
    beginResetModel();
    m_pattern = pattern.simplified();
    rank();
    endResetModel();
}

/// Somebody who types a whole name, or a path from its beginning, means that and nothing that resembles it.
int QuickOpenModel::nearnessOf(const QuickEntry &entry) const
{
    constexpr int begun = 1;
    constexpr int whole = 2;
    if (entry.title.compare(m_pattern, Qt::CaseInsensitive) == 0)
        return whole;
    const bool isPath = m_pattern.contains(QLatin1Char('/'));
    return isPath && entry.title.startsWith(m_pattern, Qt::CaseInsensitive) ? begun : 0;
}

void QuickOpenModel::rank()
{
    std::vector<std::tuple<int, int, int>> scored; // nearness, score, entry
    for (std::size_t i = 0; i < m_entries.size(); ++i) {
        const QuickEntry &entry = m_entries[i];
        if (m_pattern.isEmpty())
            scored.emplace_back(0, 0, static_cast<int>(i));
        else if (const int nearness = nearnessOf(entry); nearness > 0)
            scored.emplace_back(nearness, 0, static_cast<int>(i)); // in their own order
        else if (const auto match = fuzzyMatch(m_pattern, entry.title + QLatin1Char(' ') + entry.detail))
            scored.emplace_back(0, match->score, static_cast<int>(i));
    }
    std::stable_sort(scored.begin(), scored.end(), [](const auto &a, const auto &b) {
        return std::pair(std::get<0>(a), std::get<1>(a)) > std::pair(std::get<0>(b), std::get<1>(b));
    });
    if (scored.size() > maxRows)
        scored.resize(maxRows);
    m_shown.clear();
    for (const auto &[nearness, score, entry] : scored)
        m_shown.push_back(entry);
}

const QuickEntry &QuickOpenModel::entry(int row) const
{
    return m_entries[static_cast<std::size_t>(m_shown[static_cast<std::size_t>(row)])];
}

int QuickOpenModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_shown.size());
}

QVariant QuickOpenModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const QuickEntry &shown = entry(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return shown.title;
    case Qt::AccessibleDescriptionRole:
        return shown.key.isEmpty() ? shown.detail : QStringLiteral("%1, %2").arg(shown.detail, shown.key);
    case DetailRole:
        return shown.detail;
    case KeyRole:
        return shown.key;
    case IconRole:
        return shown.icon;
    default:
        return {};
    }
}

} // namespace klineage::ui
