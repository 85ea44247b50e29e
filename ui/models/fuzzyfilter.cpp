// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/fuzzyfilter.h"

#include "ui/models/fuzzymatch.h"

#include <algorithm>

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
    if (trimmed == m_pattern && trimmed.isEmpty())
        return; // else the source may have other rows by now
    m_pattern = trimmed;
    findLiteralHits();
    invalidateFilter();
}

/// Letters apart are what is left to try when no row has the words as they were typed.
void FuzzyFilter::findLiteralHits()
{
    m_words = m_pattern.split(QLatin1Char(' '), Qt::SkipEmptyParts);
    m_hasLiteralHits = false;
    if (m_words.isEmpty() || !sourceModel())
        return;
    const auto look = [&](auto &self, const QModelIndex &parent) -> void {
        for (int row = 0; row < sourceModel()->rowCount(parent) && !m_hasLiteralHits; ++row) {
            const QModelIndex index = sourceModel()->index(row, 0, parent);
            m_hasLiteralHits = hasWords(index.data(filterRole()).toString());
            self(self, index);
        }
    };
    look(look, {});
}

bool FuzzyFilter::hasWords(const QString &text) const
{
    return !text.isEmpty() && std::all_of(m_words.begin(), m_words.end(), [&text](const QString &word) {
        return text.contains(word, Qt::CaseInsensitive);
    });
}

bool FuzzyFilter::filterAcceptsRow(int row, const QModelIndex &parent) const
{
    if (m_pattern.isEmpty())
        return true;
    const QModelIndex index = sourceModel()->index(row, 0, parent);
    const QString text = index.data(filterRole()).toString();
    if (m_hasLiteralHits)
        return hasWords(text);
    return !text.isEmpty() && fuzzyMatch(m_pattern, text).has_value();
}

} // namespace klineage::ui
