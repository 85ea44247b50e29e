// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/cardfacets.h"

#include <QAbstractProxyModel>
#include <QStringList>

#include <map>
#include <memory>
#include <vector>

namespace klineage::ui {

class LibraryModel;
class Viewed;

/// The rows of the library that a query keeps (core/workspace/cardfacets.h), with their ancestors; a row that is kept keeps its subtree. Where
/// some rows have the query's words as they were typed, only those are kept, else those with their letters in order. Under facets
/// only cards are kept. One pass over the rows a query; 10,000 cards are one keystroke's work, so a row costs no allocation, and what is
/// known of it already is told without reading it.
class LibraryFilter : public QAbstractProxyModel
{
    Q_OBJECT

public:
    explicit LibraryFilter(LibraryModel *library, QObject *parent = nullptr);
    ~LibraryFilter() override;

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

    QModelIndex mapToSource(const QModelIndex &index) const override;
    QModelIndex mapFromSource(const QModelIndex &index) const override;
    QModelIndex index(int row, int column, const QModelIndex &parent = {}) const override;
    QModelIndex parent(const QModelIndex &child) const override;
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    bool hasChildren(const QModelIndex &parent = {}) const override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;

private:
    struct Branch;
    void build(Branch &branch, const QModelIndex &source);
    void showAgain();
    void sortSections();
    template <typename Change>
    void changeLayout(const Change &change);
    [[nodiscard]] const Branch *below(const QModelIndex &index) const;
    [[nodiscard]] const Branch *belowSource(const QModelIndex &source) const;
    [[nodiscard]] QModelIndex placeOf(int sourceRow, const Branch *branch) const;

    enum class Match { Words, Letters };
    enum class Answer : char { Unknown, No, Yes };
    using Answers =
        std::vector<Answer>; ///< whether a part of a query keeps a row; by row, as collect() comes to them
    bool collect(Branch &branch, bool isBelowKept);
    void ask(Match match);
    [[nodiscard]] Answers *answersTo(const QString &part);
    [[nodiscard]] bool keeps(const Branch &branch, int row, std::size_t number);
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
    std::size_t m_rows = 0; ///< of the library, at all depths
    int m_looks = 0;
    std::unique_ptr<Branch>
        m_root; ///< as the library's structure is; only what is shown of it changes with a query
};

} // namespace klineage::ui
