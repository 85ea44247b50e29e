// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/relations.h"

#include "core/skills/retrieval/index.h"

#include <algorithm>
#include <map>

namespace klineage::skills {

namespace {

using Features = std::vector<Feature> Card::*;

bool has(const Card &card, Features features, const std::string &wanted)
{
    return std::any_of((card.*features).begin(), (card.*features).end(),
                       [&](const Feature &feature) { return retrieval::featureText(feature) == wanted; });
}

std::vector<std::string> cardsWith(const std::vector<CardRecord> &library, Features features,
                                   const Feature &feature, const std::string &but)
{
    const std::string wanted = retrieval::featureText(feature);
    std::vector<std::string> names;
    for (const CardRecord &record : library) {
        if (record.card.name != but && !record.card.retired && has(record.card, features, wanted))
            names.push_back(record.card.name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// The cards one hop away: before it (−1) what provides what it requires, after it (1) what requires what it provides.
std::vector<std::string> neighbours(const std::vector<CardRecord> &library, const Card &card, int direction)
{
    std::vector<std::string> names;
    for (const Feature &feature : direction < 0 ? card.requirements : card.provides) {
        const auto found =
            cardsWith(library, direction < 0 ? &Card::provides : &Card::requirements, feature, card.name);
        names.insert(names.end(), found.begin(), found.end());
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

const CardRecord *findCard(const std::vector<CardRecord> &library, std::string_view name)
{
    const auto found = std::find_if(library.begin(), library.end(),
                                    [&](const CardRecord &record) { return record.card.name == name; });
    return found == library.end() ? nullptr : &*found;
}

} // namespace

std::vector<Relation> relationsOf(const std::vector<CardRecord> &library, const Card &card)
{
    using Kind = Relation::Kind;
    std::vector<Relation> relations;
    const auto add = [&](Kind kind, const std::vector<Feature> &features, Features others) {
        for (const Feature &feature : features)
            relations.push_back({kind, feature, cardsWith(library, others, feature, card.name)});
    };
    add(Kind::Requires, card.requirements, &Card::provides);
    add(Kind::Provides, card.provides, &Card::requirements);
    add(Kind::Conflicts, card.conflicts, &Card::provides);
    add(Kind::ConflictedBy, card.provides, &Card::conflicts);
    std::erase_if(relations, [](const Relation &relation) {
        return relation.kind == Kind::ConflictedBy && relation.cards.empty();
    });
    return relations;
}

Surroundings surroundingsOf(const std::vector<CardRecord> &library, std::string_view card, int hops)
{
    Surroundings around;
    if (!findCard(library, card))
        return around;
    around.nodes.push_back({std::string(card), 0});
    std::map<std::string, std::size_t> places{{std::string(card), 0}};
    for (const int direction : {-1, 1}) {
        std::vector<std::size_t> last{0};
        for (int hop = 1; hop <= hops; ++hop) {
            std::vector<std::size_t> next;
            for (const std::size_t from : last) {
                const CardRecord *record = findCard(library, around.nodes[from].card);
                for (const std::string &name : neighbours(library, record->card, direction)) {
                    const auto [place, isNew] = places.emplace(name, around.nodes.size());
                    if (isNew) {
                        around.nodes.push_back({name, direction * hop});
                        next.push_back(place->second);
                    }
                    if (around.nodes[place->second].column != direction * hop)
                        continue;
                    around.edges.push_back(direction < 0 ? Surroundings::Edge{place->second, from}
                                                         : Surroundings::Edge{from, place->second});
                }
            }
            last = std::move(next);
        }
    }
    return around;
}

} // namespace klineage::skills
