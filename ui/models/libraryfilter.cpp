// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/libraryfilter.h"

#include "ui/models/fuzzymatch.h"
#include "ui/models/librarymodel.h"
#include "ui/models/viewed.h"

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr std::size_t mostAnswers = 256; // of 10 KB each where there are 10,000 cards

} // namespace

LibraryFilter::LibraryFilter(LibraryModel *library, QObject *parent)
    : QSortFilterProxyModel(parent)
    , m_library(library)
{
    setSourceModel(library);
    // Until the next query: rows of a new structure are not those that were kept.
    connect(library, &QAbstractItemModel::modelAboutToBeReset, this, [this] {
        m_isFiltering = false;
        m_answers.clear();
    });
    connect(library, &QAbstractItemModel::dataChanged, this, [this] { m_answers.clear(); });
}

void LibraryFilter::setQuery(const QString &text)
{
    m_query = parseCardQuery(text.toStdString());
    m_words = QString::fromStdString(m_query.text).toLower().split(QLatin1Char(' '), Qt::SkipEmptyParts);
    m_isFiltering = !m_words.isEmpty() || m_query.hasFacets();
    m_match = Match::Words;
    m_looks = 0;
    if (!m_isFiltering || m_answers.size() > mostAnswers)
        m_answers.clear();
    for (const Match match : {Match::Words, Match::Letters}) {
        m_kept.clear();
        m_cards = {};
        m_match = match;
        ask(match);
        if (collect({}, false) || m_words.isEmpty())
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

/// The parts of the query, each with what is known of it.
void LibraryFilter::ask(Match match)
{
    m_row = 0;
    m_wordParts.clear();
    m_facetParts.clear();
    for (const QString &word : m_words)
        m_wordParts.push_back(
            {word, answersTo((match == Match::Words ? QStringLiteral("w:") : QStringLiteral("l:")) + word)});
    for (const Facet facet : allFacets) {
        const std::vector<std::string> &wanted = m_query.of(facet);
        if (wanted.empty())
            continue;
        QString part = QStringLiteral("%1:").arg(static_cast<int>(facet));
        for (std::size_t i = 0; i < wanted.size(); ++i)
            part += (i == 0 ? QString() : QStringLiteral(",")) + QString::fromStdString(wanted[i]);
        m_facetParts.push_back({facet, facet == Facet::Viewed ? nullptr : answersTo(part)});
    }
}

/// A part with one more letter keeps no row that it did not keep without.
LibraryFilter::Answers *LibraryFilter::answersTo(const QString &part)
{
    const auto [held, isNew] = m_answers.try_emplace(part);
    const auto shorter = isNew ? m_answers.find(part.chopped(1)) : m_answers.end();
    if (shorter != m_answers.end()) {
        held->second = shorter->second;
        std::replace(held->second.begin(), held->second.end(), Answer::Yes, Answer::Unknown);
    }
    return &held->second;
}

template <typename Find>
bool LibraryFilter::look(Answers &answers, std::size_t row, const Find &find)
{
    if (answers.size() <= row)
        answers.resize(row + 1, Answer::Unknown);
    Answer &answer = answers[row];
    if (answer == Answer::Unknown) {
        ++m_looks;
        answer = find() ? Answer::Yes : Answer::No;
    }
    return answer == Answer::Yes;
}

bool LibraryFilter::collect(const QModelIndex &parent, bool isBelowKept)
{
    bool any = false;
    const int rows = m_library->rowCount(parent);
    for (int row = 0; row < rows; ++row) {
        const QModelIndex index = m_library->index(row, 0, parent);
        const std::size_t number = m_row++;
        const bool isCard = m_library->facets(index) != nullptr;
        const bool isKept = !m_isFiltering || isBelowKept || keeps(index, number);
        const bool hasKept = !isCard && collect(index, isKept && m_isFiltering);
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

bool LibraryFilter::keeps(const QModelIndex &index, std::size_t row)
{
    if (!m_facetParts.empty()) {
        const CardFacets *facets = m_library->facets(index);
        const bool fits =
            facets && std::all_of(m_facetParts.begin(), m_facetParts.end(), [&](const FacetPart &part) {
                const auto find = [&] { return accepts(index, *facets, part.facet); };
                return part.answers ? look(*part.answers, row, find) : find();
            });
        if (!fits)
            return false;
    }
    if (m_wordParts.empty())
        return !m_facetParts.empty();
    const QString &text = m_library->searchText(index);
    return !text.isEmpty() && std::all_of(m_wordParts.begin(), m_wordParts.end(), [&](const WordPart &part) {
        return look(*part.answers, row, [&] {
            return m_match == Match::Words ? text.contains(part.word) : hasLettersInOrder(part.word, text);
        });
    });
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
