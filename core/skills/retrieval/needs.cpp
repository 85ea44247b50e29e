// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/retrieval/needs.h"

#include "core/base/listtext.h"
#include "core/kernel/expression.h"
#include "core/skills/vocabulary.h"

#include <algorithm>
#include <cmath>

namespace klineage::skills::retrieval {

namespace {

bool contains(const std::vector<std::string> &list, std::string_view word)
{
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// One of a list that may not be known.
Holds listed(const std::vector<std::string> &list, std::string_view word)
{
    if (list.empty())
        return Holds::Unknown;
    return contains(list, word) ? Holds::Yes : Holds::No;
}

Holds able(const Target &target, std::string_view capability)
{
    if (contains(target.abilities, capability))
        return Holds::Yes;
    switch (Vocabulary::instance().ability(target.platform, capability)) {
    case Vocabulary::Ability::Has:
        return Holds::Yes;
    case Vocabulary::Ability::Lacks:
        return Holds::No;
    case Vocabulary::Ability::Unknown:
        break;
    }
    return Holds::Unknown;
}

kernel::Bindings bindingsOf(const Target &target)
{
    kernel::Bindings bindings;
    for (const auto &[name, value] : target.values) {
        const bool whole = std::floor(value) == value && std::abs(value) < 1e15;
        bindings[name] = whole ? kernel::Value(static_cast<std::int64_t>(value)) : kernel::Value(value);
    }
    return bindings;
}

Holds condition(const kernel::Bindings &bindings, std::string_view text)
{
    const Result<kernel::Expression> expression = kernel::Expression::parse(text);
    if (!expression)
        return Holds::Unknown;
    const Result<double> value = expression->evaluateReal(bindings);
    if (!value)
        return Holds::Unknown;
    return *value != 0 ? Holds::Yes : Holds::No;
}

Holds holds(const Target &target, const kernel::Bindings &bindings, std::string_view need)
{
    const auto after = [&](std::string_view kind) { return need.substr(kind.size()); };
    if (need.starts_with(needs::capability))
        return able(target, after(needs::capability));
    if (need.starts_with(needs::family))
        return listed(target.families, after(needs::family));
    if (need.starts_with(needs::dtype))
        return listed(target.dtypes, after(needs::dtype));
    if (need.starts_with(needs::word))
        return listed(target.words, after(needs::word));
    if (need.starts_with(needs::part)) { // of an operator that no family knows it may have any
        if (target.families.empty() || target.workloadTags.empty())
            return Holds::Unknown;
        return Vocabulary::instance().hasPart(target.workloadTags, after(needs::part)) ? Holds::Yes
                                                                                       : Holds::No;
    }
    if (need.starts_with(needs::language))
        return target.language.empty() ? Holds::Unknown
                                       : (after(needs::language) == target.language ? Holds::Yes : Holds::No);
    return condition(bindings, need.substr(need.find(':') + 1));
}

bool noneIsLeft(const Index &index, const Likeness &likeness, Id set)
{
    const auto members = index.needSets[set];
    return !members.empty() && std::all_of(members.begin(), members.end(), [&](Id need) {
        return likeness.needs[need] == Holds::No;
    });
}

/// The words of a set, without their kind.
std::string wordsOf(const Index &index, Id set, const char *between)
{
    std::vector<std::string> words;
    for (const Id need : index.needSets[set]) {
        const std::string &text = index.needs.text(need);
        words.push_back(text.substr(text.find(':') + 1));
    }
    return joined(words, between);
}

} // namespace

std::vector<Holds> needsOf(const Index &index, const Target &target)
{
    std::vector<Holds> out(index.needs.size(), Holds::Unknown);
    const kernel::Bindings bindings = bindingsOf(target);
    for (Id need = 0; need < out.size(); ++need)
        out[need] = holds(target, bindings, index.needs.text(need));
    return out;
}

bool keepsNeeds(const Index &index, const Likeness &likeness, const Contract &contract)
{
    const auto all = index.needSets[contract.allOf];
    if (std::any_of(all.begin(), all.end(), [&](Id need) { return likeness.needs[need] == Holds::No; }))
        return false;
    return !noneIsLeft(index, likeness, contract.families) && !noneIsLeft(index, likeness, contract.dtypes)
           && !noneIsLeft(index, likeness, contract.languages) && !noneIsLeft(index, likeness, contract.words)
           && !noneIsLeft(index, likeness, contract.triggers);
}

void addBrokenNeeds(std::vector<std::string> &rules, const Index &index, const Likeness &likeness,
                    const Target &target, const Contract &contract)
{
    for (const Id need : index.needSets[contract.allOf]) {
        if (likeness.needs[need] != Holds::No)
            continue;
        const std::string &text = index.needs.text(need);
        const std::string word = text.substr(text.find(':') + 1);
        if (text.starts_with(needs::capability))
            rules.push_back("needs " + word + ", which " + target.platform + " lacks");
        else if (text.starts_with(needs::part))
            rules.push_back("acts on " + word + ", which the operator does not have");
        else
            rules.push_back("is sound when " + word + ", which does not hold");
    }
    if (noneIsLeft(index, likeness, contract.families))
        rules.push_back("is of the family " + wordsOf(index, contract.families, " or ")
                        + "; the operator is of " + joined(target.families, " and "));
    if (noneIsLeft(index, likeness, contract.dtypes))
        rules.push_back("needs an input of type " + wordsOf(index, contract.dtypes, " or "));
    if (noneIsLeft(index, likeness, contract.languages))
        rules.push_back("is written in " + wordsOf(index, contract.languages, " and ") + ", not in "
                        + target.language);
    if (noneIsLeft(index, likeness, contract.words))
        rules.push_back("acts on " + wordsOf(index, contract.words, " or ") + ", of which the code has none");
    if (noneIsLeft(index, likeness, contract.triggers))
        rules.push_back("pays when " + wordsOf(index, contract.triggers, " or ") + ", which does not hold");
}

} // namespace klineage::skills::retrieval
