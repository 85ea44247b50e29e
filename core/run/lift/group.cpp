// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/group.h"

#include "core/base/numbertext.h"
#include "core/kernel/candidatetext.h"
#include "core/run/admit/heldout.h"
#include "core/run/lift/difftext.h"
#include "core/run/lift/figuresof.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"
#include "core/talk/trialtext.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace klineage::run {

namespace {

using skills::Citation;

constexpr int contextLines = 8; // the local code around a change
constexpr std::size_t maxDiffBytes = std::size_t{24} << 10;
constexpr std::size_t maxAttemptDiffBytes = std::size_t{4} << 10;
constexpr std::size_t shownMembers = 6;
constexpr std::size_t shownAttempts = 8;
constexpr std::size_t signatureMetrics = 3;

/// How much a step brought: its direction, a class of size, and what changed most in its profile.
struct Effect {
    int sign = 0;
    int size = 0;
    std::vector<std::string> metrics;
};

struct Member {
    const lineage::Lineage *lineage = nullptr;
    std::size_t index = 0; ///< of the transition
    Effect effect;

    [[nodiscard]] const lineage::Transition &transition() const { return lineage->transitions[index]; }
    [[nodiscard]] const lineage::State &from() const { return lineage->states[index]; }
    [[nodiscard]] const lineage::State &to() const { return lineage->states[index + 1]; }
    [[nodiscard]] Citation citation() const { return lineage->key() + '/' + to().id; }
};

Effect effectOf(const lineage::Lineage &lineage, std::size_t index)
{
    Effect effect;
    const gate::Trial *before = lineage.trialOf(lineage.states[index]);
    const gate::Trial *after = lineage.trialOf(lineage.states[index + 1]);
    const gate::Comparison *comparison = after ? after->comparison("parent") : nullptr;
    if (comparison && comparison->speedup.value > 0) {
        if (comparison->change == gate::Change::Gain)
            effect.sign = 1;
        else if (comparison->change == gate::Change::Loss)
            effect.sign = -1;
        const double factor = std::exp(std::abs(std::log(comparison->speedup.value)));
        effect.size = factor < 1.02 ? 0 : factor < 1.25 ? 1 : factor < 2 ? 2 : factor < 8 ? 3 : 4;
    }
    if (before && after) {
        for (const MetricChange &change : metricChanges(*before, *after)) {
            if (effect.metrics.size() < signatureMetrics)
                effect.metrics.push_back(change.name);
        }
    }
    return effect;
}

bool isSimilar(const Effect &a, const Effect &b)
{
    if (a.sign != b.sign || std::abs(a.size - b.size) > 1)
        return false;
    return a.metrics.empty() || b.metrics.empty()
           || std::any_of(a.metrics.begin(), a.metrics.end(), [&](const std::string &name) {
                  return std::find(b.metrics.begin(), b.metrics.end(), name) != b.metrics.end();
              });
}

std::string signatureText(const Effect &effect)
{
    static const char *const sizes[] = {"no measurable", "a small", "a moderate", "a large", "a very large"};
    std::string text = std::string(sizes[effect.size])
                       + (effect.sign > 0   ? " gain"
                          : effect.sign < 0 ? " loss"
                                            : " change");
    for (std::size_t i = 0; i < effect.metrics.size(); ++i)
        text += (i == 0 ? ", with changes of " : ", ") + effect.metrics[i];
    return text;
}

bool belongs(const Member &member, const Member &first)
{
    return member.transition().category == first.transition().category
           && similarity(wordsOf(member.transition().locus), wordsOf(first.transition().locus))
                  >= similarLocus
           && isSimilar(member.effect, first.effect);
}

void addUnique(std::vector<std::string> &values, const std::string &value)
{
    if (std::find(values.begin(), values.end(), value) == values.end())
        values.push_back(value);
}

std::string readText(const lineage::Lineage &lineage, const std::string &file)
{
    return kernel::readCandidateText(lineage.directory / file).value_or(std::string());
}

std::vector<std::string> categoriesBefore(const Member &member)
{
    std::vector<std::string> before;
    for (std::size_t i = 0; i < member.index; ++i)
        addUnique(before, member.lineage->transitions[i].category);
    return before;
}

/// A group on its way from its members to what the author is shown.
class Presenter
{
public:
    explicit Presenter(const std::vector<Member> &members)
        : m_members(members)
    {}

    LiftGroup run()
    {
        const Member &first = m_members.front();
        m_group.category = first.transition().category;
        m_group.locus = first.transition().locus;
        m_group.signature = signatureText(first.effect);
        m_group.language = kernel::toString(first.lineage->surface);
        m_group.scope.priorActions = categoriesBefore(first);
        m_group.stronger = readText(*first.lineage, first.to().file);
        for (std::size_t i = 0; i < m_members.size(); ++i)
            addMember(m_members[i], i < shownMembers);
        addAttempts();
        return std::move(m_group);
    }

private:
    void addMember(const Member &member, bool withDiff)
    {
        const lineage::Lineage &lineage = *member.lineage;
        const Citation citation = member.citation();
        m_group.evidence.push_back(citation);
        addUnique(m_group.scope.cases, lineage.workload);
        addUnique(m_group.scope.languages, kernel::toString(lineage.surface));
        addUnique(m_group.scope.platforms, lineage.platform);
        const std::vector<std::string> before = categoriesBefore(member);
        std::erase_if(m_group.scope.priorActions, [&](const std::string &category) {
            return std::find(before.begin(), before.end(), category) == before.end();
        });

        std::string &text = m_group.transitions;
        text += "## " + citation + ": " + member.to().title + "\n\n" + member.transition().summary
                + "\nLocus: " + member.transition().locus
                + ". Before it the kernel was: " + member.from().title + ". Applied before:";
        for (const std::string &category : before)
            text += ' ' + category;
        text += before.empty() ? " nothing.\n" : ".\n";
        addTrial(member, citation);
        if (withDiff)
            text += fenced(diffText(readText(lineage, member.from().file),
                                    readText(lineage, member.to().file), contextLines, maxDiffBytes),
                           "diff");
        text += '\n';
    }

    void addTrial(const Member &member, const Citation &citation)
    {
        const lineage::Lineage &lineage = *member.lineage;
        const gate::Trial *before = lineage.trialOf(member.from());
        const gate::Trial *after = lineage.trialOf(member.to());
        Figures &figures = m_group.figures[citation];
        std::string &text = m_group.transitions;
        if (!after) {
            text += "It was not measured.\n";
            return;
        }
        figures = figuresOf(*after, before);
        m_group.figures["trial:" + after->id] = figures;
        addMeasured(*after, readText(lineage, member.to().file));
        text += "trial:" + after->id + ": " + figuresText(*after) + ".\n";
        for (const MetricChange &change :
             before ? metricChanges(*before, *after) : std::vector<MetricChange>())
            text += "- " + change.name + ": " + fixedText(change.before, 2) + " → "
                    + fixedText(change.after, 2) + '\n';
        const gate::Trial *match = lineage.findTrial(member.transition().rederivedMatch);
        const gate::Comparison *comparison = match ? match->comparison("parent") : nullptr;
        if (comparison)
            text += "Derived again from category and locus alone, it came to "
                    + factorText(comparison->speedup.value) + " of this kernel's speed.\n";
    }

    void addMeasured(const gate::Trial &trial, const std::string &candidate)
    {
        if (!candidate.empty()) // else nothing is known of them
            m_group.numbers[trial.id] = namedNumbers(trial, candidate);
        std::vector<skills::Measured> &measured = m_group.measured[trial.id];
        for (const gate::Comparison &comparison : trial.verdict.comparisons) {
            const gate::Interval &speedup = comparison.speedup;
            if (0 < speedup.low && speedup.low <= speedup.value && speedup.value <= speedup.high)
                measured.push_back({trial.id, comparison.against, speedup.value, speedup.low, speedup.high});
        }
    }

    /// What was tried and rejected from the same states, or as the same action.
    void addAttempts()
    {
        std::set<Citation> seen;
        for (const Member &member : m_members) {
            for (const lineage::Attempt &attempt : member.lineage->attempts) {
                const bool near = attempt.parent == member.from().id || attempt.parent == member.to().id
                                  || attempt.category == m_group.category;
                const Citation citation = member.lineage->key() + '/' + attempt.id;
                if (near && m_group.rejected.size() < shownAttempts && seen.insert(citation).second)
                    addAttempt(*member.lineage, attempt, citation);
            }
        }
        if (m_group.rejected.empty())
            m_group.attempts = "None.\n";
    }

    void addAttempt(const lineage::Lineage &lineage, const lineage::Attempt &attempt,
                    const Citation &citation)
    {
        m_group.rejected.push_back(citation);
        std::string &text = m_group.attempts;
        text += "## " + citation + ": " + attempt.title + "\n\nFrom " + attempt.parent;
        if (!attempt.category.empty())
            text += ", category " + attempt.category + ", locus " + attempt.locus;
        text += ". " + attempt.reason + '\n';
        const gate::Trial *trial = lineage.trialOf(attempt);
        const lineage::State *parent = lineage.findState(attempt.parent);
        m_group.figures[citation] =
            trial ? figuresOf(*trial, parent ? lineage.trialOf(*parent) : nullptr) : Figures();
        if (trial) {
            text += "trial:" + trial->id + ": " + figuresText(*trial) + ".\n";
            m_group.figures["trial:" + trial->id] = m_group.figures[citation];
            addMeasured(*trial, readText(lineage, attempt.file));
        }
        if (parent && attempt.category == m_group.category)
            text += fenced(diffText(readText(lineage, parent->file), readText(lineage, attempt.file), 3,
                                    maxAttemptDiffBytes),
                           "diff");
        text += '\n';
    }

    const std::vector<Member> &m_members;
    LiftGroup m_group;
};

std::vector<std::vector<Member>> groupsOf(const Workspace &workspace,
                                          const std::vector<std::string> &lineages)
{
    std::vector<std::vector<Member>> groups;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        if (!lineages.empty() && std::find(lineages.begin(), lineages.end(), lineage.key()) == lineages.end())
            continue;
        for (std::size_t i = 0; i < lineage.transitions.size(); ++i) {
            Member member{&lineage, i, effectOf(lineage, i)};
            const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Member> &g) {
                return belongs(member, g.front());
            });
            if (group != groups.end())
                group->push_back(std::move(member));
            else
                groups.push_back({std::move(member)});
        }
    }
    return groups;
}

} // namespace

std::vector<std::string> liftedLineages(const std::string &subject)
{
    std::vector<std::string> keys;
    std::string key;
    for (const char c : subject + ',') {
        if (c != ',' && c != ' ')
            key += c;
        else if (!key.empty())
            keys.push_back(std::exchange(key, {}));
    }
    return keys;
}

LiftInput gatherGroups(const Workspace &workspace, const std::vector<std::string> &lineages, bool again)
{
    LiftInput input;
    std::set<Citation> cited;
    for (const skills::CardRecord &record : workspace.cards) {
        const skills::Card &card = record.card;
        const std::vector<std::string> &languages = card.scope.languages;
        input.library.push_back({card.name, languages.empty() ? std::string() : languages.front(),
                                 card.category, card.locus, card.intent.text});
        for (const Citation &citation : citationsOf(card))
            cited.insert(citation);
    }
    for (const std::vector<Member> &members : groupsOf(workspace, lineages)) {
        const bool isLifted = std::all_of(members.begin(), members.end(), [&](const Member &member) {
            return cited.count(member.citation()) > 0;
        });
        if (again || !isLifted)
            input.groups.push_back(Presenter(members).run());
    }
    return input;
}

} // namespace klineage::run
