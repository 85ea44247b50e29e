// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/retrieval/chain.h"

#include <algorithm>

namespace klineage::skills {

namespace {

class Closure
{
public:
    Closure(const std::vector<CardRecord> &library, const Target &target, std::size_t most)
        : m_library(library)
        , m_reached(target)
        , m_most(most)
    {}

    Chain run(const RetrievalIndex &index, const RetrievalOptions &options)
    {
        for (int round = 1; m_chain.taken.size() < m_most; ++round) {
            const Retrieval found = index.find(m_reached, options);
            m_chain.blocked = found.blocked;
            if (!take(found, round))
                break;
        }
        std::erase_if(m_chain.blocked, [&](const Blocked &blocked) { return isTaken(blocked.card); });
        return std::move(m_chain);
    }

private:
    [[nodiscard]] bool isTaken(const std::string &name) const
    {
        return std::any_of(m_chain.taken.begin(), m_chain.taken.end(),
                           [&](const Link &link) { return link.retrieved.card == name; });
    }

    [[nodiscard]] const CardRecord *find(const std::string &name) const
    {
        const auto found = std::find_if(m_library.begin(), m_library.end(),
                                        [&](const CardRecord &record) { return record.card.name == name; });
        return found == m_library.end() ? nullptr : &*found;
    }

    static bool isNear(const Retrieved &retrieved)
    {
        return std::any_of(retrieved.reasons.begin(), retrieved.reasons.end(), [](const Reason &reason) {
            return reason.dimension == Dimension::Language || reason.dimension == Dimension::Platform
                   || reason.dimension == Dimension::Path;
        });
    }

    /// Those of the chain that provide what the card requires.
    [[nodiscard]] std::vector<std::string> before(const Card &card) const
    {
        std::vector<std::string> names;
        for (const Link &link : m_chain.taken) {
            const CardRecord *record = find(link.retrieved.card);
            const bool provides =
                std::any_of(card.requirements.begin(), card.requirements.end(), [&](const Feature &feature) {
                    const std::vector<Feature> &provided = record->card.provides;
                    return std::find(provided.begin(), provided.end(), feature) != provided.end();
                });
            if (provides)
                names.push_back(link.retrieved.card);
        }
        return names;
    }

    bool take(const Retrieval &found, int round)
    {
        std::vector<Link> added;
        for (const Retrieved &retrieved : found.taken) {
            const CardRecord *record = find(retrieved.card);
            if (!record || isTaken(retrieved.card) || m_chain.taken.size() + added.size() >= m_most
                || (round > 1 && !isNear(retrieved)))
                continue;
            added.push_back({retrieved, round, before(record->card)});
        }
        for (Link &link : added) {
            const Card &card = find(link.retrieved.card)->card;
            m_reached.priorActions.push_back(card.category);
            m_reached.features.insert(m_reached.features.end(), card.provides.begin(), card.provides.end());
            m_chain.taken.push_back(std::move(link));
        }
        return !added.empty();
    }

    const std::vector<CardRecord> &m_library;
    Target m_reached;
    std::size_t m_most;
    Chain m_chain;
};

} // namespace

Chain retrieveChain(const RetrievalIndex &index, const std::vector<CardRecord> &library, const Target &target,
                    const RetrievalOptions &options, std::size_t most)
{
    return Closure(library, target, most).run(index, options);
}

} // namespace klineage::skills
