// SPDX-License-Identifier: GPL-3.0-or-later
//
// One pass over the shapes of the index (see retrieval/index.h), group by group. Each shape gets a similarity in each dimension and
// their sum; each dimension keeps the best shapes that keep the rules and, beside them, the best that break one. Then the first are cut at k cards,
// the second at what lies before the k-th card. Lineage paths are walked apart, because they name cards.
#include "core/skills/retrieval.h"

#include "core/skills/retrieval/needs.h"
#include "core/skills/retrieval/query.h"

#include <algorithm>
#include <array>
#include <limits>

namespace klineage::skills {

using namespace retrieval;

namespace {

constexpr std::array scopeDimensions{Dimension::Case, Dimension::Language, Dimension::Platform,
                                     Dimension::PriorActions};

/// Below these a dimension takes nothing: a quarter of all tags shared; the same language; the same family; of the actions
/// behind the verified state half are there.
constexpr std::array leastSimilarity{0.25, 1.0, 0.2, 0.5};
constexpr int mostPerDimension = 1000;

/// What each of the dimensions counts in the order of cards, and the operator's family: that decides first. By what orders the labelled
/// targets of tests/data/retrieval best that were not kept aside; the order is not sensitive to them.
constexpr std::array weights{3.0, 0.5, 3.0, 1.0};
constexpr double pathWeight = 0.6;
constexpr double familyWeight = 5;

/// What counts, of what it counts there, in another language or on another kind of device than a card was verified on: of the workload,
/// and, of a card that says what it needs, of the language and the platform, where it is at least this for another generation too.
constexpr double portability = 0.5;
/// Of a family that a card names and none of the workloads that it was verified on has.
constexpr double unshownFamily = 0.5;
/// Of a card that goes on from something the code has.
constexpr double continuation = 0.5;
/// Of a card that provides what a better one of the result provides too: one of them is enough.
constexpr double alternative = -1;

struct Ranked {
    double similarity = 0;
    double sum = 0;
    Id shape = none; ///< decides between equals

    friend bool operator<(const Ranked &a, const Ranked &b) // nearer first
    {
        if (a.similarity != b.similarity)
            return a.similarity > b.similarity;
        return a.sum != b.sum ? a.sum > b.sum : a.shape < b.shape;
    }
};

constexpr Ranked farthest{-1, -1, none};
constexpr Ranked nearest{std::numeric_limits<double>::infinity(), 0, 0};

/// The nearest of what it is shown, in order, at most a number of them.
class Nearest
{
public:
    explicit Nearest(std::size_t most)
        : m_most(most)
    {}
    void add(const Ranked &one)
    {
        if (!(one < last()))
            return;
        if (m_kept.size() == m_most)
            m_kept.pop_back();
        m_kept.insert(std::upper_bound(m_kept.begin(), m_kept.end(), one), one);
    }
    /// Only what is nearer than this is kept.
    [[nodiscard]] Ranked last() const
    {
        if (m_most == 0)
            return nearest;
        return m_kept.size() < m_most ? farthest : m_kept.back();
    }
    [[nodiscard]] const std::vector<Ranked> &kept() const { return m_kept; }

private:
    std::size_t m_most;
    std::vector<Ranked> m_kept;
};

class Query
{
public:
    Query(const Index &index, const Target &target, const RetrievalOptions &options)
        : m_index(index)
        , m_target(target)
        , m_options(options)
        , m_likeness(index, target)
        , m_contracts(index.contracts.size(), Unknown)
        , m_k(static_cast<std::size_t>(std::clamp(options.perDimension, 1, mostPerDimension)))
        , m_mostBlocked(static_cast<std::size_t>(std::clamp(options.mostBlocked, 0, mostPerDimension)))
    {}

    Retrieval run()
    {
        walkPaths();
        scanShapes();
        Retrieval out;
        for (const auto &[card, parts] : ordered())
            out.taken.push_back(
                {std::string(m_index.name(card)), parts.sum(), std::move(m_taken[card]), parts});
        collectBlocked(out);
        return out;
    }

private:
    enum Known : char { Unknown, Kept, Broken };

    bool isOpen(const Shape &shape)
    {
        if (shape.standing != Standing::Admitted
            && !(shape.standing == Standing::Hypothesis && m_options.hypotheses))
            return false;
        if (shape.isBound && !keepsLanguage(m_likeness, m_target, shape))
            return false;
        char &known = m_contracts[shape.contract];
        if (known == Unknown)
            known = keepsContract(m_index, m_likeness, m_index.contracts[shape.contract]) ? Kept : Broken;
        return known == Kept;
    }

    /// The cards that were taken, best first.
    [[nodiscard]] std::vector<std::pair<Id, Score>> ordered() const
    {
        std::vector<std::pair<Id, Score>> cards;
        for (const auto &[card, reasons] : m_taken)
            cards.emplace_back(card, scoreOf(card));
        const auto better = [](const auto &a, const auto &b) { // by name where they are equal
            const double first = a.second.sum();
            const double second = b.second.sum();
            return first != second ? first > second : a.first < b.first;
        };
        std::sort(cards.begin(), cards.end(), better);
        std::vector<Id> seen;
        for (auto &[card, parts] : cards) {
            const Id provided = contractOf(card).provided;
            if (std::find(seen.begin(), seen.end(), provided) != seen.end())
                parts.alternative = alternative;
            else if (!m_index.featureSets[provided].empty())
                seen.push_back(provided);
        }
        std::sort(cards.begin(), cards.end(), better);
        return cards;
    }

    [[nodiscard]] const Shape &shapeOf(Id card) const { return m_index.shapes[m_index.shapeOfCard[card]]; }
    [[nodiscard]] const Contract &contractOf(Id card) const
    {
        return m_index.contracts[shapeOf(card).contract];
    }

    [[nodiscard]] static double ofWorkload(double workload, double platform)
    {
        return weights[0] * workload * (platform == 0 ? portability : 1);
    }

    /// What a workload on a platform counts.
    static void setPlace(Score &score, double workload, double platform, bool saysNeeds)
    {
        score.workload = ofWorkload(workload, platform);
        score.platform = weights[2] * (saysNeeds ? std::max(platform, portability) : platform);
    }

    /// A workload and a platform count together, where the card was verified on one of them on the other: softmax on a processor and a
    /// product on a GPU are no softmax on a GPU.
    void setBestPlace(Score &score, const Shape &shape, bool saysNeeds) const
    {
        const auto places = m_index.placeSets[shape.places];
        if (places.empty())
            setPlace(score, m_likeness.caseSet[shape.cases], m_likeness.platformSet[shape.platforms],
                     saysNeeds);
        for (const Id id : places) {
            const auto [workload, platform] = m_index.places[id];
            Score at;
            setPlace(at, m_likeness.workload[workload], m_likeness.platform[platform], saysNeeds);
            if (at.workload + at.platform > score.workload + score.platform) {
                score.workload = at.workload;
                score.platform = at.platform;
            }
        }
    }

    /// How many of the target's families a card names; one that no workload of its scope is of counts less.
    [[nodiscard]] double namedShare(const Shape &shape, std::span<const Id> named) const
    {
        std::uint64_t shown = 0;
        for (const Id workload : m_index.caseSets[shape.cases])
            shown |= m_index.familiesOfWorkload[workload];
        double share = 0;
        for (const Id need : named) {
            if (m_likeness.needs[need] != Holds::Yes)
                continue;
            const std::string_view name =
                std::string_view(m_index.needs.text(need)).substr(std::string_view(needs::family).size());
            const Id family = m_index.families.find(name);
            const bool isShown = shown == 0 || (family != none && (shown & familyBit(family)) != 0);
            share += isShown ? 1 : unshownFamily;
        }
        return share;
    }

    /// More than orders the cards of a dimension: what would be too slow to ask of all.
    [[nodiscard]] Score scoreOf(Id card) const
    {
        const Shape &shape = shapeOf(card);
        const Contract &contract = contractOf(card);
        const auto named = m_index.needSets[contract.families];
        Score out;
        setBestPlace(out, shape, !named.empty());
        out.language =
            weights[1] * std::max(m_likeness.languageSet[shape.languages], named.empty() ? 0 : portability);
        out.priorActions = weights[3] * m_likeness.priorChoice[shape.priors];
        out.family = familyWeight * familyOf(shape);
        if (const std::size_t all = m_target.families.size(); all > 0 && !named.empty())
            out.family = familyWeight
                         * std::max(namedShare(shape, named) / static_cast<double>(all),
                                    m_likeness.familySet[shape.cases]);
        if (!m_index.featureSets[contract.required].empty())
            out.continuation = continuation;
        const auto path = std::lower_bound(m_steps.begin(), m_steps.end(), card,
                                           [](const PathStep &step, Id id) { return step.card < id; });
        if (path != m_steps.end() && path->card == card)
            out.path = pathWeight * path->similarity;
        return out;
    }

    /// What a group's shapes share of the score.
    [[nodiscard]] double weighted(const Group &group) const
    {
        const std::array<double, 3> parts = partsOf(group);
        return ofWorkload(parts[0], parts[2]) + weights[1] * parts[1] + weights[2] * parts[2];
    }

    /// A card that names families is left out where they don't fit; one that names none is taken for what the operators have that it
    /// was verified on.
    [[nodiscard]] double familyOf(const Shape &shape) const
    {
        if (!m_likeness.knowsFamilies)
            return 0;
        const bool namesThem = !m_index.needSets[m_index.contracts[shape.contract].families].empty();
        return namesThem ? 1 : m_likeness.familySet[shape.cases];
    }

    /// What is a shape's own of the score.
    [[nodiscard]] double ofShape(const Shape &shape) const
    {
        return weights[3] * m_likeness.priorChoice[shape.priors] + familyWeight * familyOf(shape);
    }

    /// The lists of one dimension. A shape goes to one of them, and which one is only asked when either wants it.
    struct Lists {
        Nearest open;
        Nearest closed;
        Ranked bar; ///< the nearer of the two lists' last ones: what lies behind it is not wanted

        [[nodiscard]] bool want(const Ranked &one) const { return one < bar; }
        [[nodiscard]] bool reaches(double similarity, double sum) const
        {
            return similarity > bar.similarity || (similarity == bar.similarity && sum >= bar.sum);
        }
        void add(const Ranked &one, bool isOpen)
        {
            (isOpen ? open : closed).add(one);
            bar = std::max(open.last(), closed.last());
        }
    };

    void scanShapes()
    {
        std::array<Lists, 4> lists{fresh(), fresh(), fresh(), fresh()};
        for (const Group &group : m_index.groups)
            scanGroup(group, lists);
        scanPriors(lists[3]);
        for (std::size_t d = 0; d < scopeDimensions.size(); ++d)
            takeBest(scopeDimensions[d], lists[d].open.kept(), lists[d].closed.kept());
    }

    [[nodiscard]] Lists fresh() const
    {
        const Nearest open(m_k);
        const Nearest closed(m_mostBlocked);
        return {open, closed, std::max(open.last(), closed.last())};
    }

    [[nodiscard]] std::array<double, 3> partsOf(const Group &group) const
    {
        return {m_likeness.caseSet[group.cases], m_likeness.languageSet[group.languages],
                m_likeness.platformSet[group.platforms]};
    }

    void scanGroup(const Group &group, std::array<Lists, 4> &lists)
    {
        const std::array<double, 3> parts = partsOf(group);
        const double sum = weighted(group);
        const double most = sum + weights[3] + (m_likeness.knowsFamilies ? familyWeight : 0);
        for (std::size_t d = 0; d < parts.size(); ++d) {
            if (parts[d] < leastSimilarity[d] || !lists[d].reaches(parts[d], most))
                continue;
            for (Id id = group.firstShape; id < group.firstShape + group.shapeCount; ++id)
                offer(lists[d], {parts[d], sum + ofShape(m_index.shapes[id]), id});
        }
    }

    void scanPriors(Lists &lists)
    {
        Id at = 0;
        for (Id choice = 0; choice < m_index.endByPriors.size(); ++choice) {
            const double prior = m_likeness.priorChoice[choice];
            const Id end = m_index.endByPriors[choice];
            if (prior < leastSimilarity[3] || prior < lists.bar.similarity) {
                at = end;
                continue;
            }
            for (; at < end; ++at) {
                const Id id = m_index.shapesByPriors[at];
                const Group &group = m_index.groups[m_index.groupOfShape[id]];
                offer(lists, {prior, weighted(group) + ofShape(m_index.shapes[id]), id});
            }
        }
    }

    void offer(Lists &lists, const Ranked &one)
    {
        if (lists.want(one))
            lists.add(one, isOpen(m_index.shapes[one.shape]));
    }

    /// The first k cards of the open shapes; of the closed ones those that lie before the last card taken.
    void takeBest(Dimension dimension, const std::vector<Ranked> &open, const std::vector<Ranked> &closed)
    {
        std::size_t rank = 0;
        const Ranked *last = nullptr;
        for (const Ranked &one : open) {
            const Shape &shape = m_index.shapes[one.shape];
            for (Id i = 0; i < shape.cardCount && rank < m_k; ++i)
                m_taken[m_index.postings[shape.firstCard + i]].push_back(
                    reason(dimension, one.similarity, ++rank, shape));
            if (rank == m_k) {
                last = &one;
                break;
            }
        }
        std::size_t place = 0;
        for (const Ranked &one : closed) {
            const Shape &shape = m_index.shapes[one.shape];
            for (Id i = 0; i < shape.cardCount && place < m_mostBlocked && (!last || one < *last); ++i)
                m_blocked[m_index.postings[shape.firstCard + i]].push_back(
                    reason(dimension, one.similarity, ++place, shape));
        }
    }

    void walkPaths()
    {
        std::size_t rank = 0;
        std::size_t place = 0;
        m_steps = stepsAlongPaths(m_index, m_likeness, m_target);
        for (const PathStep &step : m_steps) {
            if (rank == m_k)
                break;
            const bool open = isOpen(m_index.shapes[m_index.shapeOfCard[step.card]]);
            if (!open && place == m_mostBlocked)
                continue;
            auto &list = open ? m_taken : m_blocked;
            list[step.card].push_back({Dimension::Path, step.similarity,
                                       static_cast<int>(open ? ++rank : ++place), pathText(m_index, step)});
        }
        std::sort(m_steps.begin(), m_steps.end(),
                  [](const PathStep &a, const PathStep &b) { return a.card < b.card; });
    }

    void collectBlocked(Retrieval &out)
    {
        struct Near {
            double nearness;
            Id card;
        };
        std::vector<Near> order;
        std::map<Id, std::vector<std::string>> rules;
        for (const auto &[card, reasons] : m_blocked) {
            auto broken = brokenRules(m_index, m_likeness, m_target,
                                      m_index.shapes[m_index.shapeOfCard[card]], m_options.hypotheses);
            order.push_back({scoreOf(card).sum() / (1.0 + static_cast<double>(broken.size())), card});
            rules.emplace(card, std::move(broken));
        }
        std::sort(order.begin(), order.end(), [](const Near &a, const Near &b) {
            return a.nearness != b.nearness ? a.nearness > b.nearness : a.card < b.card;
        });
        order.resize(std::min(order.size(), m_mostBlocked));
        for (const Near &one : order) {
            const Contract &contract =
                m_index.contracts[m_index.shapes[m_index.shapeOfCard[one.card]].contract];
            std::vector<std::string> &broken = rules[one.card];
            const bool isThere = isProvided(m_index, m_likeness, contract)
                                 && broken.size() == m_index.featureSets[contract.provided].size();
            out.blocked.push_back({std::string(m_index.name(one.card)), std::move(m_blocked[one.card]),
                                   std::move(broken), isThere});
        }
    }

    [[nodiscard]] Reason reason(Dimension dimension, double similarity, std::size_t rank,
                                const Shape &shape) const
    {
        Reason out{dimension, similarity, static_cast<int>(rank), {}};
        switch (dimension) {
        case Dimension::Case:
            out.text = caseText(m_index, m_likeness, m_target, shape);
            break;
        case Dimension::Language:
            out.text = languageText(m_target, shape);
            break;
        case Dimension::Platform:
            out.text = platformText(m_index, m_likeness, m_target, shape);
            break;
        case Dimension::PriorActions:
            out.text = priorText(m_index, m_likeness, shape);
            break;
        case Dimension::Path:
            break; // has its own
        }
        return out;
    }

    const Index &m_index;
    const Target &m_target;
    const RetrievalOptions &m_options;
    Likeness m_likeness;
    std::vector<char> m_contracts; ///< Known, by contract
    std::size_t m_k;
    std::size_t m_mostBlocked;
    std::vector<PathStep> m_steps; ///< by card
    std::map<Id, std::vector<Reason>> m_taken;
    std::map<Id, std::vector<Reason>> m_blocked;
};

} // namespace

const char *toString(Dimension dimension)
{
    switch (dimension) {
    case Dimension::Case:
        return "case";
    case Dimension::Language:
        return "language";
    case Dimension::Platform:
        return "platform";
    case Dimension::PriorActions:
        return "prior_actions";
    case Dimension::Path:
        return "path";
    }
    return "case";
}

Retrieval RetrievalIndex::find(const Target &target, const RetrievalOptions &options) const
{
    return Query(m_d->index, target, options).run();
}

} // namespace klineage::skills
