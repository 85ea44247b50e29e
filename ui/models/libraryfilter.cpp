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

/// The rows below one row of the library. Indexes of the filter point at the branch that they are in.
struct LibraryFilter::Branch {
    const Branch *parent = nullptr;
    int sourceRow = 0;  ///< in the parent's branch
    QModelIndex source; ///< whose rows these are
    int sourceRows = 0;
    bool areCards = false;                      ///< all of them, and nothing is below; else none
    std::vector<std::unique_ptr<Branch>> below; ///< by row of the library; of cards none
    std::vector<int> shown;                     ///< rows of the library; in its order, but for the sections
};

LibraryFilter::LibraryFilter(LibraryModel *library, QObject *parent)
    : QAbstractProxyModel(parent)
    , m_library(library)
{
    setSourceModel(library);
    showAgain();
    // Until the next query: rows of a new structure are not those that were kept.
    connect(library, &QAbstractItemModel::modelAboutToBeReset, this, [this] {
        beginResetModel();
        m_isFiltering = false;
        m_answers.clear();
    });
    connect(library, &QAbstractItemModel::modelReset, this, [this] {
        showAgain();
        endResetModel();
    });
    connect(library, &QAbstractItemModel::dataChanged, this, [this](const QModelIndex &first) {
        m_answers.clear();
        const Branch *changed = belowSource(first.parent()); // the library says it of all rows of a parent
        if (!changed->shown.empty())
            emit dataChanged(createIndex(0, 0, changed),
                             createIndex(static_cast<int>(changed->shown.size()) - 1, 0, changed));
    });
}

LibraryFilter::~LibraryFilter() = default;

/// All rows, of what may be another structure.
void LibraryFilter::showAgain()
{
    m_root = std::make_unique<Branch>();
    m_rows = 0;
    build(*m_root, {});
    m_cards = {};
    collect(*m_root, false);
    sortSections();
}

void LibraryFilter::build(Branch &branch, const QModelIndex &source)
{
    branch.source = source;
    branch.sourceRows = m_library->rowCount(source);
    branch.areCards = m_library->facets(m_library->index(0, 0, source)) != nullptr;
    m_rows += static_cast<std::size_t>(branch.sourceRows);
    for (int row = 0; row < branch.sourceRows && !branch.areCards; ++row) {
        branch.below.push_back(std::make_unique<Branch>());
        branch.below.back()->parent = &branch;
        branch.below.back()->sourceRow = row;
        build(*branch.below.back(), m_library->index(row, 0, source));
    }
}

/// As a change of the layout: thousands of rows that come and go one by one would take a view seconds.
template <typename Change>
void LibraryFilter::changeLayout(const Change &change)
{
    emit layoutAboutToBeChanged();
    const QModelIndexList before = persistentIndexList();
    QModelIndexList rows;
    for (const QModelIndex &index : before)
        rows << mapToSource(index);
    change();
    for (QModelIndex &row : rows)
        row = mapFromSource(row);
    changePersistentIndexList(before, rows);
    emit layoutChanged();
}

void LibraryFilter::setQuery(const QString &text)
{
    changeLayout([&] {
        m_query = parseCardQuery(text.toStdString());
        m_words = QString::fromStdString(m_query.text).toLower().split(QLatin1Char(' '), Qt::SkipEmptyParts);
        m_isFiltering = !m_words.isEmpty() || m_query.hasFacets();
        m_looks = 0;
        if (!m_isFiltering || m_answers.size() > mostAnswers)
            m_answers.clear();
        for (const Match match : {Match::Words, Match::Letters}) {
            m_cards = {};
            m_match = match;
            ask(match);
            if (collect(*m_root, false) || m_words.isEmpty())
                break;
        }
        sortSections();
    });
}

void LibraryFilter::setCardsFirst(bool first)
{
    m_cardsFirst = first;
    changeLayout([this] { sortSections(); });
}

void LibraryFilter::sortSections()
{
    std::sort(m_root->shown.begin(), m_root->shown.end(), [this](int left, int right) {
        const auto isOfCards = [this](int row) {
            return m_cardsFirst && m_root->below[static_cast<std::size_t>(row)]->areCards;
        };
        return isOfCards(left) != isOfCards(right) ? isOfCards(left) : left < right;
    });
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
    held->second.resize(m_rows, Answer::Unknown);
    return &held->second;
}

template <typename Find>
bool LibraryFilter::look(Answers &answers, std::size_t row, const Find &find)
{
    Answer &answer = answers[row];
    if (answer == Answer::Unknown) {
        ++m_looks;
        answer = find() ? Answer::Yes : Answer::No;
    }
    return answer == Answer::Yes;
}

bool LibraryFilter::collect(Branch &branch, bool isBelowKept)
{
    branch.shown.clear();
    for (int row = 0; row < branch.sourceRows; ++row) {
        const std::size_t number = m_row++;
        const bool isKept = !m_isFiltering || isBelowKept || keeps(branch, row, number);
        const bool hasKept =
            !branch.areCards
            && collect(*branch.below[static_cast<std::size_t>(row)], isKept && m_isFiltering);
        if (isKept || hasKept)
            branch.shown.push_back(row);
    }
    if (branch.areCards) {
        m_cards.all += branch.sourceRows;
        m_cards.shown += static_cast<int>(branch.shown.size());
    }
    return !branch.shown.empty();
}

bool LibraryFilter::hasText(const QModelIndex &index, Match match) const
{
    const QString &text = m_library->searchText(index);
    return !text.isEmpty() && std::all_of(m_words.begin(), m_words.end(), [&](const QString &word) {
        return match == Match::Words ? text.contains(word) : hasLettersInOrder(word, text);
    });
}

bool LibraryFilter::keeps(const Branch &branch, int row, std::size_t number)
{
    const auto index = [&] { return m_library->index(row, 0, branch.source); };
    if (!m_facetParts.empty()) {
        const bool fits =
            branch.areCards
            && std::all_of(m_facetParts.begin(), m_facetParts.end(), [&](const FacetPart &part) {
                   const auto find = [&] {
                       const QModelIndex card = index();
                       return accepts(card, *m_library->facets(card), part.facet);
                   };
                   return part.answers ? look(*part.answers, number, find) : find();
               });
        if (!fits)
            return false;
    }
    if (m_wordParts.empty())
        return !m_facetParts.empty();
    return std::all_of(m_wordParts.begin(), m_wordParts.end(), [&](const WordPart &part) {
        return look(*part.answers, number, [&] {
            const QString &text = m_library->searchText(index());
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

/// The rows below a row of the filter; nullptr where nothing can be.
const LibraryFilter::Branch *LibraryFilter::below(const QModelIndex &index) const
{
    if (!index.isValid())
        return m_root.get();
    const auto *in = static_cast<const Branch *>(index.constInternalPointer());
    return in->areCards
               ? nullptr
               : in->below[static_cast<std::size_t>(in->shown[static_cast<std::size_t>(index.row())])].get();
}

/// The same of a row of the library, which need not be shown.
const LibraryFilter::Branch *LibraryFilter::belowSource(const QModelIndex &source) const
{
    if (!source.isValid())
        return m_root.get();
    const Branch *in = belowSource(source.parent());
    return in->areCards ? nullptr : in->below[static_cast<std::size_t>(source.row())].get();
}

QModelIndex LibraryFilter::placeOf(int sourceRow, const Branch *branch) const
{
    const std::vector<int> &shown = branch->shown;
    const auto at = branch->areCards ? std::lower_bound(shown.begin(), shown.end(), sourceRow)
                                     : std::find(shown.begin(), shown.end(), sourceRow);
    return at == shown.end() || *at != sourceRow
               ? QModelIndex()
               : createIndex(static_cast<int>(at - shown.begin()), 0, branch);
}

QModelIndex LibraryFilter::mapToSource(const QModelIndex &index) const
{
    if (!index.isValid())
        return {};
    const auto *in = static_cast<const Branch *>(index.constInternalPointer());
    return m_library->index(in->shown[static_cast<std::size_t>(index.row())], 0, in->source);
}

QModelIndex LibraryFilter::mapFromSource(const QModelIndex &index) const
{
    return index.isValid() ? placeOf(index.row(), belowSource(index.parent())) : QModelIndex();
}

QModelIndex LibraryFilter::index(int row, int column, const QModelIndex &parent) const
{
    const Branch *in = below(parent);
    const bool exists = in && column == 0 && row >= 0 && row < static_cast<int>(in->shown.size());
    return exists ? createIndex(row, 0, in) : QModelIndex();
}

QModelIndex LibraryFilter::parent(const QModelIndex &child) const
{
    const auto *in = static_cast<const Branch *>(child.constInternalPointer());
    return in && in->parent ? placeOf(in->sourceRow, in->parent) : QModelIndex();
}

int LibraryFilter::rowCount(const QModelIndex &parent) const
{
    const Branch *in = below(parent);
    return in ? static_cast<int>(in->shown.size()) : 0;
}

int LibraryFilter::columnCount(const QModelIndex &) const
{
    return 1;
}

bool LibraryFilter::hasChildren(const QModelIndex &parent) const
{
    return rowCount(parent) > 0;
}

/// A view asks for those of each row as it lays them out: of a card they are known without reading it.
Qt::ItemFlags LibraryFilter::flags(const QModelIndex &index) const
{
    const auto *in = static_cast<const Branch *>(index.constInternalPointer());
    return in && in->areCards ? LibraryModel::cardFlags : QAbstractProxyModel::flags(index);
}

} // namespace klineage::ui
