// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/listtext.h"
#include "core/skills/retrieval/needs.h"
#include "core/skills/retrieval/query.h"
#include "core/skills/retrieval/similarity.h"

#include <algorithm>

namespace klineage::skills::retrieval {

namespace {

/// "verified" only where a roundtrip says so.
const char *verb(const Shape &shape)
{
    return shape.standing == Standing::Admitted || shape.standing == Standing::Rejected ? "verified"
                                                                                        : "claimed";
}

Id bestMember(std::span<const Id> members, const std::vector<double> &likeness)
{
    Id best = members.front();
    for (const Id member : members)
        best = likeness[member] > likeness[best] ? member : best;
    return best;
}

std::string percent(double fraction)
{
    return std::to_string(static_cast<int>(fraction * 100 + 0.5)) + " %";
}

} // namespace

std::string caseText(const Index &index, const Likeness &likeness, const Target &target, const Shape &shape)
{
    const Id best = bestMember(index.caseSets[shape.cases], likeness.workload);
    const std::string head = std::string(verb(shape)) + " on " + index.workloads.text(best);
    if (index.workloads.text(best) == normalized(target.workload))
        return head + ", the same workload";
    return head + ", which is " + percent(likeness.workload[best]) + " like "
           + (target.workload.empty() ? std::string("the target") : target.workload) + " by its tags";
}

std::string languageText(const Target &target, const Shape &shape)
{
    return std::string(verb(shape)) + " in " + target.language;
}

std::string platformText(const Index &index, const Likeness &likeness, const Target &target,
                         const Shape &shape)
{
    const Id best = bestMember(index.platformSets[shape.platforms], likeness.platform);
    const std::string head = std::string(verb(shape)) + " on " + index.platforms.text(best);
    if (likeness.platform[best] >= 1)
        return head + ", the same platform";
    return head + ", of the same family as " + target.platform;
}

std::string priorText(const Index &index, const Likeness &likeness, const Shape &shape)
{
    const auto choices = index.priorChoices[shape.priors];
    const Id best = bestMember(choices, likeness.actionSet);
    std::vector<std::string> actions;
    std::vector<std::string> missing;
    for (const Id action : index.actionSets[best]) {
        actions.push_back(index.actions.text(action));
        if (!likeness.applied[action])
            missing.push_back(index.actions.text(action));
    }
    if (actions.empty())
        return std::string(verb(shape)) + " on a naive kernel"
               + (likeness.actionCount == 0 ? ", as the target is" : "");
    const std::string head = std::string(verb(shape)) + " after " + listed(actions);
    if (!missing.empty())
        return head + ", of which the code lacks " + listed(missing);
    return head + ", which the code has";
}

std::string pathText(const Index &index, const PathStep &step)
{
    const std::string lineage = step.path->lineage;
    const std::string where = step.after == none
                                  ? "from the beginning of " + lineage
                                  : "along " + lineage + " after " + index.actions.text(step.after);
    if (step.distance == 1)
        return "the next step " + where;
    return std::to_string(step.distance) + " steps on " + where;
}

bool keepsLanguage(const Likeness &likeness, const Target &target, const Shape &shape)
{
    return target.language.empty() || likeness.languageSet[shape.languages] > 0;
}

bool isProvided(const Index &index, const Likeness &likeness, const Contract &contract)
{
    const auto provided = index.featureSets[contract.provided];
    return !provided.empty() && std::all_of(provided.begin(), provided.end(), [&](Id feature) {
        return likeness.settled[feature] != 0;
    });
}

bool keepsContract(const Index &index, const Likeness &likeness, const Contract &contract)
{
    const auto has = [&](Id feature) { return likeness.features[feature] != 0; };
    const auto required = index.featureSets[contract.required];
    const auto conflicting = index.featureSets[contract.conflicting];
    return std::all_of(required.begin(), required.end(), has) && !isProvided(index, likeness, contract)
           && std::none_of(conflicting.begin(), conflicting.end(), has)
           && keepsNeeds(index, likeness, contract);
}

std::vector<std::string> brokenRules(const Index &index, const Likeness &likeness, const Target &target,
                                     const Shape &shape, bool hypotheses)
{
    std::vector<std::string> rules;
    if (shape.standing == Standing::Hypothesis && !hypotheses)
        rules.emplace_back("is a hypothesis: no held-out roundtrip has admitted it");
    if (shape.standing == Standing::Retired)
        rules.emplace_back("is retired");
    if (shape.standing == Standing::Rejected)
        rules.emplace_back("is rejected by its standing review");
    if (shape.isBound && !keepsLanguage(likeness, target, shape))
        rules.push_back("was not " + std::string(verb(shape)) + " in " + target.language
                        + ", and does not say what it needs");
    const Contract &contract = index.contracts[shape.contract];
    addBrokenNeeds(rules, index, likeness, target, contract);
    const auto has = [&](Id feature) { return likeness.features[feature] != 0; };
    for (const Id feature : index.featureSets[contract.required]) {
        if (!has(feature))
            rules.push_back("requires " + index.features.text(feature) + ", which the code does not provide");
    }
    if (isProvided(index, likeness, contract)) {
        for (const Id feature : index.featureSets[contract.provided])
            rules.push_back("already provided: the code has " + index.features.text(feature));
    }
    for (const Id feature : index.featureSets[contract.conflicting]) {
        if (has(feature))
            rules.push_back("conflicts with " + index.features.text(feature) + ", which the code provides");
    }
    return rules;
}

} // namespace klineage::skills::retrieval
