// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/libraryfilter.h"

#include "ui/models/fuzzymatch.h"
#include "ui/models/librarymodel.h"
#include "ui/models/viewed.h"

#include <algorithm>

namespace klineage::ui {

LibraryFilter::LibraryFilter(LibraryModel *library, QObject *parent)
    : QSortFilterProxyModel(parent)
    , m_library(library)
{
    setSourceModel(library);
    // Until the next query: rows of a new structure are not those that were kept.
    connect(library, &QAbstractItemModel::modelAboutToBeReset, this, [this] { m_isFiltering = false; });
}

void LibraryFilter::setQuery(const QString &text)
{
    m_query = parseCardQuery(text.toStdString());
    m_words = QString::fromStdString(m_query.text).toLower().split(QLatin1Char(' '), Qt::SkipEmptyParts);
    m_isFiltering = !m_words.isEmpty() || m_query.hasFacets();
    m_match = Match::Words;
    for (const Match match : {Match::Words, Match::Letters}) {
        m_kept.clear();
        m_cards = {};
        m_match = match;
        if (collect({}, false, match) || m_words.isEmpty())
            break;
    }
    // As a change of the layout: thousands of rows that come and go one by one would take a view seconds.
    invalidate();
}

void LibraryFilter::setCardsFirst(bool first)
{
    m_cardsFirst = first;
    sort(first ? 0 : -1);
}

bool LibraryFilter::lessThan(const QModelIndex &left, const QModelIndex &right) const
{
    const auto isOfCards = [this](const QModelIndex &section) {
        return m_library->facets(m_library->index(0, 0, section)) != nullptr;
    };
    if (!left.parent().isValid() && isOfCards(left) != isOfCards(right))
        return isOfCards(left);
    return left.row() < right.row();
}

bool LibraryFilter::collect(const QModelIndex &parent, bool isBelowKept, Match match)
{
    bool any = false;
    const int rows = m_library->rowCount(parent);
    for (int row = 0; row < rows; ++row) {
        const QModelIndex index = m_library->index(row, 0, parent);
        const bool isCard = m_library->facets(index) != nullptr;
        const bool isKept = !m_isFiltering || isBelowKept || keeps(index, match);
        const bool hasKept = !isCard && collect(index, isKept && m_isFiltering, match);
        m_cards.all += isCard ? 1 : 0;
        m_cards.shown += isCard && isKept ? 1 : 0;
        if (m_isFiltering && (isKept || hasKept))
            m_kept.insert(index.constInternalPointer());
        any = any || isKept || hasKept;
    }
    return any;
}

bool LibraryFilter::hasText(const QModelIndex &index, Match match) const
{
    const QString &text = m_library->searchText(index);
    return !text.isEmpty() && std::all_of(m_words.begin(), m_words.end(), [&](const QString &word) {
        return match == Match::Words ? text.contains(word) : hasLettersInOrder(word, text);
    });
}

bool LibraryFilter::keeps(const QModelIndex &index, Match match) const
{
    if (m_query.hasFacets()) {
        const CardFacets *facets = m_library->facets(index);
        const bool fits = facets && std::all_of(allFacets.begin(), allFacets.end(), [&](Facet facet) {
                              return m_query.of(facet).empty() || accepts(index, *facets, facet);
                          });
        if (!fits)
            return false;
    }
    return m_words.isEmpty() ? m_query.hasFacets() : hasText(index, match);
}

bool LibraryFilter::accepts(const QModelIndex &index, const CardFacets &facets, Facet facet) const
{
    if (facet != Facet::Viewed)
        return m_query.accepts(facets, facet);
    CardFacets viewed;
    viewed.of(facet) = wordsOf(index, facets, facet);
    return m_query.accepts(viewed, facet);
}

std::vector<std::string> LibraryFilter::wordsOf(const QModelIndex &index, const CardFacets &facets,
                                                Facet facet) const
{
    if (facet != Facet::Viewed)
        return facets.of(facet);
    return {m_viewed && m_viewed->contains(index.data(LibraryModel::ViewedKeyRole).toString()) ? "yes"
                                                                                               : "no"};
}

std::map<std::string, int> LibraryFilter::counts(Facet facet) const
{
    std::map<std::string, int> counts;
    const auto add = [&](const QModelIndex &index, const CardFacets &facets) {
        const bool isLeft =
            (m_words.isEmpty() || hasText(index, m_match))
            && std::all_of(allFacets.begin(), allFacets.end(), [&](Facet other) {
                   return other == facet || m_query.of(other).empty() || accepts(index, facets, other);
               });
        for (const std::string &word : wordsOf(index, facets, facet))
            counts[word] += isLeft ? 1 : 0;
    };
    for (int section = 0; section < m_library->rowCount(); ++section) {
        const QModelIndex parent = m_library->index(section, 0);
        for (int row = 0; row < m_library->rowCount(parent); ++row) {
            const QModelIndex index = m_library->index(row, 0, parent);
            if (const CardFacets *facets = m_library->facets(index))
                add(index, *facets);
        }
    }
    return counts;
}

bool LibraryFilter::filterAcceptsRow(int row, const QModelIndex &parent) const
{
    return !m_isFiltering || m_kept.count(m_library->index(row, 0, parent).constInternalPointer()) > 0;
}

} // namespace klineage::ui
