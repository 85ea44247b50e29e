// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/retrieval/needs.h"
#include "core/skills/retrieval/query.h"
#include "core/skills/retrieval/similarity.h"
#include "core/skills/vocabulary.h"

#include <algorithm>
#include <array>
#include <bit>

namespace klineage::skills::retrieval {

namespace {

std::vector<double> bestOfSets(const Sets &sets, const std::vector<double> &likenessOfMember)
{
    std::vector<double> best(sets.size(), 0);
    for (Id set = 0; set < sets.size(); ++set) {
        for (const Id member : sets[set])
            best[set] = std::max(best[set], likenessOfMember[member]);
    }
    return best;
}

/// The target's tags as the index knows them, and how many there are with those that it does not know.
struct TargetTags {
    std::vector<char> known; ///< by tag
    std::size_t count = 0;
};

TargetTags tagsOf(const Index &index, const Target &target)
{
    TargetTags tags;
    tags.known.resize(index.tags.size(), 0);
    std::vector<std::string> different;
    for (const std::string &tag : target.workloadTags)
        different.push_back(normalized(tag));
    std::sort(different.begin(), different.end());
    different.erase(std::unique(different.begin(), different.end()), different.end());
    for (const std::string &tag : different) {
        if (const Id id = index.tags.find(tag); id != none)
            tags.known[id] = 1;
    }
    tags.count = different.size();
    if (tags.count > 0)
        return tags;
    // A target that names no tags is a workload that the index may know.
    const Id workload = index.workloads.find(normalized(target.workload));
    if (workload == none || index.tagsOfWorkload[workload] == none)
        return tags;
    for (const Id tag : index.tagSets[index.tagsOfWorkload[workload]])
        tags.known[tag] = 1;
    tags.count = index.tagSets[index.tagsOfWorkload[workload]].size();
    return tags;
}

std::vector<double> workloadLikeness(const Index &index, const Target &target)
{
    const TargetTags own = tagsOf(index, target);
    std::vector<double> bySet(index.tagSets.size(), 0);
    for (Id set = 0; set < index.tagSets.size(); ++set) {
        std::size_t shared = 0;
        for (const Id tag : index.tagSets[set])
            shared += own.known[tag] ? 1 : 0;
        bySet[set] = tagSimilarity(shared, own.count + index.tagSets[set].size() - shared);
    }
    std::vector<double> likeness(index.workloads.size(), 0);
    for (Id workload = 0; workload < likeness.size(); ++workload) {
        if (index.tagsOfWorkload[workload] != none)
            likeness[workload] = bySet[index.tagsOfWorkload[workload]];
    }
    if (const Id same = index.workloads.find(normalized(target.workload)); same != none)
        likeness[same] = 1;
    return likeness;
}

std::uint64_t familiesOf(const Index &index, const Target &target)
{
    if (target.families.empty()) {
        const Id workload = index.workloads.find(normalized(target.workload));
        return workload == none ? 0 : index.familiesOfWorkload[workload];
    }
    std::uint64_t families = 0;
    for (const std::string &family : target.families) {
        if (const Id id = index.families.find(family); id != none)
            families |= familyBit(id);
    }
    return families;
}

/// Of two sets of families: what they share, of all that there are.
double familyLikeness(std::uint64_t a, std::uint64_t b)
{
    return (a & b) == 0 ? 0 : static_cast<double>(std::popcount(a & b)) / std::popcount(a | b);
}

std::vector<double> actionLikeness(const Index &index, const std::vector<char> &applied, std::size_t count)
{
    // There are few different pairs of sizes and very many sets.
    constexpr std::size_t side = 16;
    std::array<double, side * side> known;
    for (std::size_t size = 0; size < side; ++size) {
        for (std::size_t shared = 0; shared < side; ++shared)
            known[size * side + shared] =
                shared > size || shared > count ? 0 : priorSimilarity(shared, size - shared, count - shared);
    }
    std::vector<double> likeness(index.actionSets.size());
    for (Id set = 0; set < likeness.size(); ++set) {
        const std::span<const Id> actions = index.actionSets[set];
        std::size_t shared = 0;
        for (const Id action : actions)
            shared += static_cast<std::size_t>(applied[action]);
        likeness[set] = actions.size() < side
                            ? known[actions.size() * side + shared]
                            : priorSimilarity(shared, actions.size() - shared, count - shared);
    }
    return likeness;
}

} // namespace

Likeness::Likeness(const Index &index, const Target &target)
    : workload(workloadLikeness(index, target))
{
    const std::string ownPlatform = normalized(target.platform);
    for (Id id = 0; id < index.platforms.size(); ++id)
        platform.push_back(platformSimilarity(index.platforms.text(id), ownPlatform));
    std::vector<double> language(index.languages.size(), 0);
    if (const Id same = index.languages.find(normalized(target.language)); same != none)
        language[same] = 1;
    caseSet = bestOfSets(index.caseSets, workload);
    const std::uint64_t families = familiesOf(index, target);
    knowsFamilies = families != 0;
    std::vector<double> family(index.familiesOfWorkload.size());
    for (Id id = 0; id < family.size(); ++id)
        family[id] = familyLikeness(index.familiesOfWorkload[id], families);
    familySet = bestOfSets(index.caseSets, family);
    platformSet = bestOfSets(index.platformSets, platform);
    languageSet = bestOfSets(index.languageSets, language);

    std::vector<std::string> actions;
    for (const std::string &action : target.priorActions)
        actions.push_back(actionText(action));
    std::sort(actions.begin(), actions.end());
    actions.erase(std::unique(actions.begin(), actions.end()), actions.end());
    actionCount = actions.size();
    applied.resize(index.actions.size(), 0);
    for (const std::string &action : actions) {
        if (const Id id = index.actions.find(action); id != none)
            applied[id] = 1;
    }
    actionSet = actionLikeness(index, applied, actionCount);
    priorChoice = bestOfSets(index.priorChoices, actionSet);

    features.resize(index.features.size(), 0);
    settled.resize(index.features.size(), 0);
    for (const Feature &feature : target.features) {
        const std::string text = featureText(feature);
        if (const Id id = index.features.find(text); id != none)
            features[id] = settled[id] = 1;
        for (const std::string &implied : Vocabulary::instance().impliedBy(text)) {
            if (const Id id = index.features.find(implied); id != none)
                settled[id] = 1;
        }
    }
    needs = needsOf(index, target);
}

} // namespace klineage::skills::retrieval
