// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/storecard.h"

#include "core/files/atomicfile.h"
#include "core/lineage/lineage.h"
#include "core/lineage/rewrite.h"

#include <algorithm>
#include <map>

namespace klineage::run {

namespace {

using skills::Citation;
using skills::Claim;

constexpr std::size_t maxNameBytes = 64;

void addMissing(std::vector<std::string> &values, const std::vector<std::string> &more)
{
    for (const std::string &value : more) {
        if (std::find(values.begin(), values.end(), value) == values.end())
            values.push_back(value);
    }
}

/// Claims that nearly say the same share one entry with the evidence of both; the others are added, or left out.
void addClaims(std::vector<Claim> &claims, const std::vector<Claim> &more, bool newOnes)
{
    for (const Claim &claim : more) {
        const auto same = std::find_if(claims.begin(), claims.end(), [&](const Claim &known) {
            return known.text == claim.text || similarity(wordsOf(known.text), wordsOf(claim.text)) >= 0.8;
        });
        if (same != claims.end())
            addMissing(same->evidence, claim.evidence);
        else if (newOnes)
            claims.push_back(claim);
    }
}

bool holdsAll(const std::vector<Citation> &all, const std::vector<Citation> &some)
{
    return std::all_of(some.begin(), some.end(), [&](const Citation &citation) {
        return std::find(all.begin(), all.end(), citation) != all.end();
    });
}

bool isAmong(const std::vector<double> &values, double value)
{
    return std::find(values.begin(), values.end(), value) != values.end();
}

/// Parameters of the same name share one entry with the values of both; others, and values that are no evidence, are added or left out.
void addParameters(std::vector<skills::Parameter> &parameters, const std::vector<skills::Parameter> &more,
                   bool newOnes)
{
    for (const skills::Parameter &parameter : more) {
        const auto same =
            std::find_if(parameters.begin(), parameters.end(),
                         [&](const skills::Parameter &known) { return known.name == parameter.name; });
        if (same == parameters.end()) {
            if (newOnes)
                parameters.push_back(parameter);
            continue;
        }
        if (newOnes) {
            same->values.insert(same->values.end(), parameter.values.begin(), parameter.values.end());
            std::sort(same->values.begin(), same->values.end());
            same->values.erase(std::unique(same->values.begin(), same->values.end()), same->values.end());
        }
        for (const skills::TriedValue &tried : parameter.tried) {
            const bool isKnown =
                std::find(same->tried.begin(), same->tried.end(), tried) != same->tried.end();
            if (!isKnown && (newOnes || isAmong(same->values, tried.value)))
                same->tried.push_back(tried);
        }
    }
}

/// What only format 2 can say is left out of a card of format 1.
void dropFormat2(std::vector<Claim> &claims)
{
    for (Claim &claim : claims) {
        claim.measured.reset();
        claim.id.clear();
        claim.when.clear();
    }
}

} // namespace

std::vector<AlikeCard> alikeCards(const skills::Card &card, const std::vector<KnownCard> &known)
{
    const std::set<std::string> locus = wordsOf(card.locus);
    const std::set<std::string> intent = wordsOf(card.intent.text);
    std::vector<AlikeCard> alike;
    for (const KnownCard &other : known) {
        if (other.category == card.category)
            alike.push_back({other.name, similarity(wordsOf(other.intent), intent),
                             similarity(wordsOf(other.locus), locus)});
    }
    std::stable_sort(alike.begin(), alike.end(),
                     [](const AlikeCard &a, const AlikeCard &b) { return a.intent > b.intent; });
    return alike;
}

std::optional<std::string> duplicateOf(const skills::Card &card, const std::vector<KnownCard> &known)
{
    const std::vector<AlikeCard> alike = alikeCards(card, known);
    const auto found =
        std::find_if(alike.begin(), alike.end(), [](const AlikeCard &other) { return other.saysTheSame(); });
    return found == alike.end() ? std::nullopt : std::optional(found->name);
}

std::string freeName(const std::string &name, const std::vector<KnownCard> &known)
{
    const auto isTaken = [&](const std::string &wanted) {
        return std::any_of(known.begin(), known.end(),
                           [&](const KnownCard &card) { return card.name == wanted; });
    };
    std::string wanted = name;
    for (int number = 2; isTaken(wanted); ++number) {
        const std::string suffix = '-' + std::to_string(number);
        wanted = name.substr(0, maxNameBytes - suffix.size()) + suffix;
    }
    return wanted;
}

skills::Card merged(const skills::CardRecord &kept, const skills::Card &added)
{
    const bool newOnes = kept.life() != skills::Life::Admitted;
    skills::Card card = kept.card;
    addMissing(card.evidence, added.evidence);
    addMissing(card.intent.evidence, added.intent.evidence);
    addMissing(card.anchor.evidence, added.anchor.evidence);
    addClaims(card.effects, added.effects, newOnes);
    addClaims(card.risks, added.risks, newOnes);
    if (card.format >= 2) {
        addClaims(card.triggers, added.triggers, newOnes);
        addParameters(card.parameters, added.parameters, newOnes);
    } else {
        dropFormat2(card.effects);
        dropFormat2(card.risks);
    }
    if (kept.life() == skills::Life::Hypothesis) {
        addMissing(card.scope.cases, added.scope.cases);
        addMissing(card.scope.languages, added.scope.languages);
        addMissing(card.scope.platforms, added.scope.platforms);
    }
    return card;
}

Status storeCard(const skills::CardStore &store, const LiftedCard &lifted)
{
    const Result<skills::CardRecord> created =
        store.create(lifted.card, lifted.carrier, lifted.buildingBlock);
    if (created)
        return {};
    if (created.error().code != ErrorCode::Conflict)
        return tl::unexpected(created.error());
    const Result<skills::CardRecord> there = store.read(lifted.card.name);
    if (there && there->card.category == lifted.card.category
        && holdsAll(there->card.evidence, lifted.card.evidence))
        return {};
    return tl::unexpected(created.error());
}

Status mergeCard(const skills::CardStore &store, const std::string &name, const skills::Card &added,
                 const std::string &run)
{
    const Result<skills::CardRecord> kept = store.read(name);
    if (!kept)
        return tl::unexpected(kept.error());
    const Result<skills::CardRecord> saved =
        store.save(merged(*kept, added), "lift", "Merged with the evidence of the run " + run + '.');
    return saved ? Status() : Status(tl::unexpected(saved.error()));
}

Status linkTransitions(const std::filesystem::path &workspace, const std::string &card,
                       const std::vector<Citation> &transitions)
{
    std::map<std::string, std::vector<std::string>> statesOf; // by the lineage's key
    for (const Citation &citation : transitions) {
        const std::size_t slash = citation.rfind('/');
        statesOf[citation.substr(0, slash)].push_back(citation.substr(slash + 1));
    }
    for (const auto &[key, states] : statesOf) {
        const std::size_t slash = key.find('/');
        const std::filesystem::path folder =
            workspace / "workloads" / key.substr(0, slash) / "lineages" / key.substr(slash + 1);
        Result<lineage::Lineage> lineage = lineage::readLineage(folder);
        if (!lineage)
            continue; // it went since: the card's evidence still names it, and the lint says so
        bool changed = false;
        for (lineage::Transition &transition : lineage->transitions) {
            const bool cited = std::find(states.begin(), states.end(), transition.to) != states.end();
            if (cited && transition.card.empty()) {
                transition.card = card;
                changed = true;
            }
        }
        if (!changed)
            continue;
        if (Status written = lineage::rewriteLineage(folder, *lineage); !written)
            return written;
    }
    return {};
}

} // namespace klineage::run
