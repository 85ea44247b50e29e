// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/fuzzyfilter.h"

#include "ui/models/fuzzymatch.h"

namespace klineage::ui {

FuzzyFilter::FuzzyFilter(QObject *parent)
    : QSortFilterProxyModel(parent)
{
    setRecursiveFilteringEnabled(true);
    setAutoAcceptChildRows(true);
}

void FuzzyFilter::setPattern(const QString &pattern)
{
    const QString trimmed = pattern.simplified();
    if (trimmed == m_pattern)
        return;
    m_pattern = trimmed;
    invalidateFilter();
}

bool FuzzyFilter::filterAcceptsRow(int row, const QModelIndex &parent) const
{
    if (m_pattern.isEmpty())
        return true;
    const QModelIndex index = sourceModel()->index(row, 0, parent);
    const QString text = index.data(filterRole()).toString();
    return !text.isEmpty() && fuzzyMatch(m_pattern, text).has_value();
}

} // namespace klineage::ui
