// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/cardfacets.h"

#include <QSortFilterProxyModel>
#include <QStringList>

#include <map>
#include <unordered_set>
#include <vector>

namespace klineage::ui {

class LibraryModel;
class Viewed;

/// The rows of the library that a query keeps (core/workspace/cardfacets.h), with their ancestors; a row that is kept keeps its subtree. Where
/// some rows have the query's words as they were typed, only those are kept, else those with their letters in order. Under facets
/// only cards are kept. One pass over the rows a query; 10,000 cards are one keystroke's work.
class LibraryFilter : public QSortFilterProxyModel
{
    Q_OBJECT

public:
    explicit LibraryFilter(LibraryModel *library, QObject *parent = nullptr);

    /// Who knows what was viewed. Not owned; outlives the filter.
    void setViewed(const Viewed *viewed) { m_viewed = viewed; }
    /// Also when the text is as before: the rows may be others by now.
    void setQuery(const QString &text);
    [[nodiscard]] const CardQuery &query() const { return m_query; }
    /// Sections of cards before the workloads; within a section nothing moves.
    void setCardsFirst(bool first);
    [[nodiscard]] bool cardsFirst() const { return m_cardsFirst; }
    [[nodiscard]] bool isFiltering() const { return m_isFiltering; }

    struct Cards {
        int shown = 0;
        int all = 0;
    };
    [[nodiscard]] Cards cards() const { return m_cards; }
    /// The words that cards have under a facet, each with how many cards there are that the rest of the query keeps.
    [[nodiscard]] std::map<std::string, int> counts(Facet facet) const;
    /// How many texts and facets the last query had to read: what an earlier one of the same typing has found out is not read again.
    [[nodiscard]] int looks() const { return m_looks; }

protected:
    bool filterAcceptsRow(int row, const QModelIndex &parent) const override;
    bool lessThan(const QModelIndex &left, const QModelIndex &right) const override;

private:
    enum class Match { Words, Letters };
    enum class Answer : char { Unknown, No, Yes };
    using Answers =
        std::vector<Answer>; ///< whether a part of a query keeps a row; by row, as collect() comes to them
    bool collect(const QModelIndex &parent, bool isBelowKept);
    void ask(Match match);
    [[nodiscard]] Answers *answersTo(const QString &part);
    [[nodiscard]] bool keeps(const QModelIndex &index, std::size_t row);
    template <typename Find>
    bool look(Answers &answers, std::size_t row, const Find &find);
    [[nodiscard]] bool hasText(const QModelIndex &index, Match match) const;
    [[nodiscard]] bool accepts(const QModelIndex &index, const CardFacets &facets, Facet facet) const;
    [[nodiscard]] std::vector<std::string> wordsOf(const QModelIndex &index, const CardFacets &facets,
                                                   Facet facet) const;

    LibraryModel *m_library;
    const Viewed *m_viewed = nullptr;
    CardQuery m_query;
    QStringList m_words;
    bool m_isFiltering = false;
    bool m_cardsFirst = false;
    Match m_match = Match::Words;
    Cards m_cards;
    std::map<QString, Answers>
        m_answers; ///< to the parts of this query and of those before it, since nothing was typed
    struct WordPart {
        QString word;
        Answers *answers;
    };
    struct FacetPart {
        Facet facet;
        Answers *answers; ///< nullptr: what was viewed changes while the query stays
    };
    std::vector<WordPart> m_wordParts;
    std::vector<FacetPart> m_facetParts;
    std::size_t m_row = 0;
    int m_looks = 0;
    std::unordered_set<const void *> m_kept; ///< rows of the library, by what its indexes point at
};

} // namespace klineage::ui
