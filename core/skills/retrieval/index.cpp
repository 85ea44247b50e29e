// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/retrieval/index.h"

#include "core/skills/admission.h"
#include "core/skills/retrieval/needs.h"
#include "core/skills/retrieval/similarity.h"
#include "core/skills/vocabulary.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace klineage::skills {

using namespace retrieval;

namespace {

/// workload, platform and state of "layernorm/pocl/K02"; missing ones are empty.
std::array<std::string_view, 3> splitTarget(std::string_view target)
{
    std::array<std::string_view, 3> parts;
    for (std::string_view &part : parts) {
        const std::size_t slash = target.find('/');
        part = target.substr(0, slash);
        target = slash == std::string_view::npos ? std::string_view() : target.substr(slash + 1);
    }
    return parts;
}

void addOnce(std::vector<std::string> &list, std::string_view text)
{
    if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end())
        list.emplace_back(text);
}

using PathsByLineage = std::map<std::string, const LineagePath *, std::less<>>;

PathsByLineage byLineage(const std::vector<LineagePath> &paths)
{
    PathsByLineage found;
    for (const LineagePath &path : paths)
        found.emplace(path.lineage, &path);
    return found;
}

/// The actions behind the state that a roundtrip started from; nothing when its lineage or state is not known.
std::optional<std::vector<std::string>> actionsBefore(const PathsByLineage &paths, std::string_view target)
{
    const auto path = paths.find(lineageOfTarget(target));
    const std::string_view state = splitTarget(target)[2];
    if (path == paths.end() || state.empty())
        return std::nullopt;
    const std::vector<std::string> &states = path->second->states;
    const std::vector<std::string> &categories = path->second->categories;
    const auto found = std::find(states.begin(), states.end(), state);
    if (found != states.end() && states.size() == categories.size())
        return std::vector(categories.begin(), categories.begin() + (found - states.begin()) + 1);
    if (state == "K00" || state == "K0")
        return std::vector<std::string>();
    return std::nullopt;
}

struct Verified {
    Scope scope;
    std::vector<std::pair<std::string, std::string>> places; ///< a workload on a platform
    std::vector<std::vector<std::string>> priors;            ///< of each state
};

Verified verified(const CardRecord &record, const PathsByLineage &paths)
{
    Verified out;
    const bool hashed = record.card.format >= 2 && !record.verifications.empty();
    const std::string hash = hashed ? contentHash(record) : std::string();
    for (const Verification &run : record.verifications) {
        if (!showed(run, record, hash))
            continue;
        const auto [workload, platform, state] = splitTarget(run.target);
        addOnce(out.scope.cases, workload);
        addOnce(out.scope.platforms, platform);
        out.places.emplace_back(workload, platform);
        std::string_view language = languageOfPlatform(platform);
        if (language.empty() && record.card.scope.languages.size() == 1)
            language = record.card.scope.languages.front();
        addOnce(out.scope.languages, language);
        const auto actions = actionsBefore(paths, run.target);
        out.priors.push_back(actions ? *actions : record.card.scope.priorActions);
        for (const std::string &action : out.priors.back())
            addOnce(out.scope.priorActions, action);
    }
    return out;
}

Standing standingOf(const CardRecord &record, Life life)
{
    if (life == Life::Retired)
        return Standing::Retired;
    const Review *review = record.standingReview();
    if (review && review->verdict == ReviewVerdict::Reject)
        return Standing::Rejected;
    return life == Life::Admitted ? Standing::Admitted : Standing::Hypothesis;
}

/// Fills an index; what only the filling needs goes with it.
class Builder
{
public:
    Builder(Index &index, PathsByLineage paths)
        : m_index(index)
        , m_paths(std::move(paths))
    {}

    void addCards(const std::vector<CardRecord> &library)
    {
        std::vector<Id> order(library.size());
        std::iota(order.begin(), order.end(), Id{0});
        std::sort(order.begin(), order.end(),
                  [&](Id a, Id b) { return library[a].card.name < library[b].card.name; });
        m_index.shapeOfCard.reserve(library.size());
        m_index.nameEnds.reserve(library.size());
        for (const Id at : order) {
            m_index.names += library[at].card.name;
            m_index.nameEnds.push_back(static_cast<Id>(m_index.names.size()));
            m_index.shapeOfCard.push_back(shapeOf(library[at]));
        }
        groupShapes();
        invertPriors();
        fillPostings();
    }

    void addTags(const std::vector<WorkloadTags> &workloads)
    {
        for (const WorkloadTags &workload : workloads) {
            const Id id = m_index.workloads.intern(normalized(workload.workload));
            m_index.tagsOfWorkload.resize(std::max<std::size_t>(m_index.tagsOfWorkload.size(), id + 1), none);
            std::vector<Id> tags;
            for (const std::string &tag : workload.tags)
                tags.push_back(m_index.tags.intern(normalized(tag)));
            m_index.tagsOfWorkload[id] = m_index.tagSets.intern(std::move(tags));
            m_index.familiesOfWorkload.resize(m_index.tagsOfWorkload.size(), 0);
            for (const std::string &family : Vocabulary::instance().familiesOf(workload.tags))
                m_index.familiesOfWorkload[id] |= familyBit(m_index.families.intern(family));
        }
    }

    void addPaths(const std::vector<LineagePath> &paths)
    {
        for (const LineagePath &from : paths) {
            Path path;
            path.lineage = from.lineage;
            path.workload = m_index.workloads.intern(normalized(from.workload));
            path.platform = m_index.platforms.intern(normalized(from.platform));
            for (std::size_t i = 0; i < std::min(from.cards.size(), from.categories.size()); ++i) {
                path.cards.push_back(m_index.findCard(from.cards[i]));
                path.categories.push_back(m_index.actions.intern(actionText(from.categories[i])));
            }
            m_index.paths.push_back(std::move(path));
        }
    }

    void finish()
    {
        m_index.tagsOfWorkload.resize(m_index.workloads.size(), none);
        m_index.familiesOfWorkload.resize(m_index.workloads.size(), 0);
        for (Sets *sets : {&m_index.caseSets, &m_index.languageSets, &m_index.platformSets,
                           &m_index.placeSets, &m_index.actionSets, &m_index.priorChoices,
                           &m_index.featureSets, &m_index.tagSets, &m_index.needSets})
            sets->close();
    }

private:
    static Id internAll(Symbols &symbols, Sets &sets, const std::vector<std::string> &texts)
    {
        std::vector<Id> ids;
        for (const std::string &text : texts)
            ids.push_back(symbols.intern(normalized(text)));
        return sets.intern(std::move(ids));
    }

    Id internPlaces(const std::vector<std::pair<std::string, std::string>> &places)
    {
        std::vector<Id> ids;
        for (const auto &[workload, platform] : places) {
            const std::pair place(m_index.workloads.intern(normalized(workload)),
                                  m_index.platforms.intern(normalized(platform)));
            const auto [found, added] = m_places.emplace(place, static_cast<Id>(m_index.places.size()));
            if (added)
                m_index.places.push_back(place);
            ids.push_back(found->second);
        }
        return m_index.placeSets.intern(std::move(ids));
    }

    Id internActions(const std::vector<std::string> &texts)
    {
        std::vector<Id> ids;
        for (const std::string &text : texts)
            ids.push_back(m_index.actions.intern(actionText(text)));
        return m_index.actionSets.intern(std::move(ids));
    }

    Id featureSet(const std::vector<Feature> &features)
    {
        std::vector<Id> ids;
        for (const Feature &feature : features)
            ids.push_back(m_index.features.intern(featureText(feature)));
        return m_index.featureSets.intern(std::move(ids));
    }

    Id needSet(const char *kind, const std::vector<std::string> &words)
    {
        std::vector<Id> ids;
        for (const std::string &word : words)
            ids.push_back(m_index.needs.intern(std::string(kind) + word));
        return m_index.needSets.intern(std::move(ids));
    }

    const std::vector<Id> &needsSpokenOf(const Feature &feature)
    {
        const Vocabulary &vocabulary = Vocabulary::instance();
        const Id id = m_index.features.intern(featureText(feature));
        m_spokenOf.resize(std::max<std::size_t>(m_spokenOf.size(), id + 1));
        if (!m_spokenOf[id]) {
            m_spokenOf[id].emplace();
            for (const std::string &capability : vocabulary.capabilitiesIn(feature.name))
                m_spokenOf[id]->push_back(m_index.needs.intern(needs::capability + capability));
            for (const std::string &part : vocabulary.partsIn(m_index.features.text(id)))
                m_spokenOf[id]->push_back(m_index.needs.intern(needs::part + part));
        }
        return *m_spokenOf[id];
    }

    /// A card of the first format names no language: one that says nothing else of what it needs either is of use where it was verified.
    static bool isSilent(const Card &card)
    {
        const Capability &capability = card.capability;
        return card.format < 2 && capability.features.empty() && capability.dtypes.empty()
               && capability.families.empty();
    }

    /// Capabilities, said or spoken of by what it provides, the parts of an operator that it acts on, and the preconditions that can be
    /// evaluated: all of them have to hold.
    Id allOf(const Card &card)
    {
        std::vector<Id> ids;
        for (const Feature &feature : card.provides) {
            const std::vector<Id> &spokenOf = needsSpokenOf(feature);
            ids.insert(ids.end(), spokenOf.begin(), spokenOf.end());
        }
        for (const std::string &feature : card.capability.features)
            ids.push_back(m_index.needs.intern(needs::capability + feature));
        for (const Claim &claim : card.preconditions) {
            if (!claim.when.empty())
                ids.push_back(m_index.needs.intern(needs::precondition + claim.when));
        }
        return m_index.needSets.intern(std::move(ids));
    }

    Id contractOf(const Card &card)
    {
        Contract contract;
        contract.required = featureSet(card.requirements);
        contract.provided = featureSet(card.provides);
        contract.conflicting = featureSet(card.conflicts);
        contract.allOf = allOf(card);
        contract.families = needSet(needs::family, card.capability.families);
        contract.dtypes = needSet(needs::dtype, card.capability.dtypes);
        const bool isFirst = card.format < 2;
        contract.languages =
            needSet(needs::language, isFirst ? std::vector<std::string>() : card.scope.languages);
        contract.words = needSet(needs::word, card.anchorWords);
        std::vector<std::string> conditions;
        for (const Claim &claim : card.triggers) {
            if (!claim.when.empty())
                conditions.push_back(claim.when);
        }
        contract.triggers = needSet(needs::trigger, conditions);
        const auto [found, added] = m_contracts.emplace(contract, static_cast<Id>(m_index.contracts.size()));
        if (added)
            m_index.contracts.push_back(contract);
        return found->second;
    }

    Id shapeOf(const CardRecord &record)
    {
        Shape shape;
        const Life life = record.life();
        shape.standing = standingOf(record, life);
        Verified known;
        if (life == Life::Admitted)
            known = verified(record, m_paths);
        else
            known = {record.card.scope, {}, {record.card.scope.priorActions}};
        shape.cases = internAll(m_index.workloads, m_index.caseSets, known.scope.cases);
        shape.languages = internAll(m_index.languages, m_index.languageSets, known.scope.languages);
        shape.platforms = internAll(m_index.platforms, m_index.platformSets, known.scope.platforms);
        std::sort(known.places.begin(), known.places.end());
        known.places.erase(std::unique(known.places.begin(), known.places.end()), known.places.end());
        if (known.places.size() == known.scope.cases.size() * known.scope.platforms.size())
            known.places.clear();
        shape.places = internPlaces(known.places);
        std::vector<Id> priors;
        for (const std::vector<std::string> &actions : known.priors)
            priors.push_back(internActions(actions));
        shape.priors = m_index.priorChoices.intern(std::move(priors));
        shape.contract = contractOf(record.card);
        shape.isBound = !known.scope.languages.empty() && isSilent(record.card);
        const auto key = std::tuple(shape.cases, shape.languages, shape.platforms, shape.places, shape.priors,
                                    shape.contract, shape.standing, shape.isBound);
        const auto [found, added] = m_shapes.emplace(key, static_cast<Id>(m_index.shapes.size()));
        if (added)
            m_index.shapes.push_back(shape);
        return found->second;
    }

    void groupShapes()
    {
        const auto place = [](const auto &one) {
            return std::tuple(one.cases, one.languages, one.platforms);
        };
        std::vector<Id> order(m_index.shapes.size());
        std::iota(order.begin(), order.end(), Id{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](Id a, Id b) { return place(m_index.shapes[a]) < place(m_index.shapes[b]); });
        std::vector<Shape> sorted;
        sorted.reserve(order.size());
        m_index.groupOfShape.reserve(order.size());
        std::vector<Id> newId(order.size());
        for (const Id old : order) {
            const Shape &shape = m_index.shapes[old];
            if (m_index.groups.empty() || place(m_index.groups.back()) != place(shape))
                m_index.groups.push_back(
                    {shape.cases, shape.languages, shape.platforms, static_cast<Id>(sorted.size()), 0});
            ++m_index.groups.back().shapeCount;
            newId[old] = static_cast<Id>(sorted.size());
            sorted.push_back(shape);
            m_index.groupOfShape.push_back(static_cast<Id>(m_index.groups.size() - 1));
        }
        m_index.shapes = std::move(sorted);
        for (Id &shape : m_index.shapeOfCard)
            shape = newId[shape];
    }

    void invertPriors()
    {
        std::vector<Id> &by = m_index.shapesByPriors;
        by.resize(m_index.shapes.size());
        std::iota(by.begin(), by.end(), Id{0});
        std::stable_sort(by.begin(), by.end(),
                         [&](Id a, Id b) { return m_index.shapes[a].priors < m_index.shapes[b].priors; });
        m_index.endByPriors.resize(m_index.priorChoices.size());
        for (Id at = 0; at < by.size(); ++at)
            m_index.endByPriors[m_index.shapes[by[at]].priors] = at + 1;
    }

    void fillPostings()
    {
        for (const Id shape : m_index.shapeOfCard)
            ++m_index.shapes[shape].cardCount;
        Id next = 0;
        for (Shape &shape : m_index.shapes) {
            shape.firstCard = next;
            next += shape.cardCount;
            shape.cardCount = 0;
        }
        m_index.postings.resize(m_index.shapeOfCard.size());
        for (Id card = 0; card < m_index.shapeOfCard.size(); ++card) {
            Shape &shape = m_index.shapes[m_index.shapeOfCard[card]];
            m_index.postings[shape.firstCard + shape.cardCount++] = card;
        }
    }

    Index &m_index;
    PathsByLineage m_paths;
    std::map<Contract, Id> m_contracts;
    std::map<std::tuple<Id, Id, Id, Id, Id, Id, Standing, bool>, Id> m_shapes;
    std::map<std::pair<Id, Id>, Id> m_places;
    std::vector<std::optional<std::vector<Id>>> m_spokenOf; ///< by feature: needs
};

} // namespace

std::string retrieval::featureText(const Feature &feature)
{
    return normalized(feature.name) + " at "
           + Vocabulary::instance().canonical(Vocabulary::Kind::Locus, feature.locus);
}

std::string retrieval::actionText(std::string_view category)
{
    return Vocabulary::instance().canonical(Vocabulary::Kind::Category, category);
}

std::string_view Index::name(Id card) const
{
    const Id begin = card == 0 ? 0 : nameEnds[card - 1];
    return std::string_view(names).substr(begin, nameEnds[card] - begin);
}

Id Index::findCard(std::string_view wanted) const
{
    Id low = 0;
    Id high = static_cast<Id>(nameEnds.size());
    while (low < high) {
        const Id middle = low + (high - low) / 2;
        if (name(middle) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return !wanted.empty() && low < nameEnds.size() && name(low) == wanted ? low : none;
}

Scope verifiedScope(const CardRecord &record, const std::vector<LineagePath> &paths)
{
    return verified(record, byLineage(paths)).scope;
}

RetrievalIndex::RetrievalIndex(const std::vector<CardRecord> &library, std::vector<LineagePath> paths,
                               const std::vector<WorkloadTags> &workloads)
    : m_d(std::make_unique<Private>())
{
    Builder builder(m_d->index, byLineage(paths));
    builder.addCards(library);
    builder.addTags(workloads);
    builder.addPaths(paths);
    builder.finish();
}

RetrievalIndex::~RetrievalIndex() = default;
RetrievalIndex::RetrievalIndex(RetrievalIndex &&) noexcept = default;
RetrievalIndex &RetrievalIndex::operator=(RetrievalIndex &&) noexcept = default;

std::size_t RetrievalIndex::size() const
{
    return m_d->index.nameEnds.size();
}

} // namespace klineage::skills
