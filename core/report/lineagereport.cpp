// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/numbertext.h"
#include "core/diff/changes.h"
#include "core/kernel/candidatetext.h"
#include "core/lineage/table.h"
#include "core/report/figuretext.h"
#include "core/report/parts.h"
#include "core/report/subjectreports.h"
#include "core/trial/analysis/analysis.h"
#include "core/trial/analysis/explain/rooflinepath.h"

#include <algorithm>

namespace klineage::report {

namespace {

using lineage::Lineage;
using lineage::State;

constexpr std::size_t mostReferenceColumns = 3; ///< what fits on a page beside the other columns

bool isTimed(const gate::Trial *trial)
{
    return trial && trial->verdict.status == gate::VerdictStatus::Correct && trial->latencyNs.value > 0;
}

/// T_K0 / T_state, of trials that were not paired.
std::string toFirstText(const Lineage &lineage, const State &state)
{
    const gate::Trial *first = lineage.trialOf(lineage.states.front());
    const gate::Trial *own = lineage.trialOf(state);
    if (!isTimed(first) || !isTimed(own) || state.id == lineage.states.front().id
        || !lineage::elsewhere(own, first->environment.device).empty())
        return nothing;
    return speedupText(lineage::ratioOfMedians(first->latencyNs, own->latencyNs));
}

/// device: the lineage's. A latency of another one says of which.
std::string latencyOrVerdict(const std::string &device, const gate::Trial *trial)
{
    const std::string elsewhere = lineage::elsewhere(trial, device);
    return outcomeText(trial) + (elsewhere.empty() ? "" : " on " + elsewhere);
}

/// All that states were timed beside, the headline of the last one first.
std::vector<std::string> referencesOf(const Lineage &lineage)
{
    std::vector<std::string> names;
    const auto add = [&names](const std::string &name) {
        if (name != "parent" && std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    };
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        const gate::Trial *trial = lineage.trialOf(*state);
        if (!isTimed(trial))
            continue;
        if (const gate::Comparison *headline = trial->referenceComparison())
            add(headline->against);
        for (const gate::Comparison &comparison : trial->verdict.comparisons)
            add(comparison.against);
    }
    return names;
}

std::string headline(const Lineage &lineage)
{
    const State &best = lineage.states.back();
    const gate::Trial *trial = lineage.trialOf(best);
    if (!isTimed(trial))
        return best.id + " is the strongest state; its speed was not recorded (" + outcomeText(trial) + ").";
    std::string text = best.id + " runs in " + latencyText(trial->latencyNs);
    if (const std::string gain = toFirstText(lineage, best); gain != nothing)
        text += "; " + gain + " the speed of " + lineage.states.front().id + ", from two trials, not paired";
    if (const gate::Comparison *reference = trial->referenceComparison();
        reference && reference->speedup.value > 0)
        text += "; " + speedupText(reference->speedup) + " the speed of " + reference->against + ", paired";
    return text + ".";
}

/// In the table of states when they are few; else in one of their own, and the headline alone there.
bool areColumns(const std::vector<std::string> &references)
{
    return references.size() <= mostReferenceColumns;
}

/// Value and both ends of an interval; three empty cells where nothing was measured.
void addInterval(std::vector<std::string> &row, const gate::Interval *interval)
{
    if (!interval || interval->value <= 0) {
        row.insert(row.end(), 3, std::string());
        return;
    }
    for (const double value : {interval->value, interval->low, interval->high})
        row.push_back(shortestText(value));
}

/// The states for programs: latencies and paired speedups, each with the ends of its 95 % interval.
Data stateData(const Lineage &lineage)
{
    const std::vector<std::string> references = referencesOf(lineage);
    Data data{{"state", "title", "category", "verdict", "latency_ns", "latency_low_ns", "latency_high_ns"},
              {}};
    std::vector<std::string> others{"parent"};
    others.insert(others.end(), references.begin(), references.end());
    for (const std::string &other : others) {
        for (const char *end : {"", "_low", "_high"})
            data.columns.push_back("speedup_to_" + other + end);
    }
    data.columns.push_back("device");
    for (const State &state : lineage.states) {
        const gate::Trial *trial = lineage.trialOf(state);
        const lineage::Transition *step = lineage.transitionTo(state.id);
        std::vector<std::string> row{state.id, state.title, step ? step->category : std::string(),
                                     trial ? gate::toString(trial->verdict.status) : "not gated"};
        addInterval(row, isTimed(trial) ? &trial->latencyNs : nullptr);
        for (const std::string &other : others) {
            const gate::Comparison *comparison = isTimed(trial) ? trial->comparison(other) : nullptr;
            addInterval(row, comparison ? &comparison->speedup : nullptr);
        }
        row.push_back(trial ? trial->environment.device : std::string());
        data.rows.push_back(std::move(row));
    }
    return data;
}

Table stateTable(const Lineage &lineage)
{
    std::vector<std::string> references = referencesOf(lineage);
    if (!areColumns(references))
        references.resize(1);
    Table table{{{"State"},
                 {"Title"},
                 {"Category"},
                 {"Latency", true},
                 {"Against parent", true},
                 {"Against K0", true}},
                {}};
    table.columns[5].heading = "Against " + lineage.states.front().id + ", not paired";
    for (const std::string &reference : references)
        table.columns.push_back({"Against " + reference, true});
    table.data = stateData(lineage);
    table.columns.push_back({"Bound by"});
    table.columns.push_back({"Findings"});
    const std::string device = lineage::deviceOf(lineage);
    for (const State &state : lineage.states) {
        const gate::Trial *trial = lineage.trialOf(state);
        const lineage::Transition *step = lineage.transitionTo(state.id);
        std::vector<std::string> row{state.id,
                                     state.title,
                                     step ? step->category : nothing,
                                     latencyOrVerdict(device, trial),
                                     pairedText(trial, "parent"),
                                     toFirstText(lineage, state)};
        for (const std::string &reference : references)
            row.push_back(pairedText(trial, reference));
        if (isTimed(trial)) {
            const gate::Analysis analysis = gate::analyse(*trial);
            std::string tools;
            for (const gate::ToolFinding &finding : analysis.findings) {
                if (tools.find(finding.tool) == std::string::npos)
                    tools += (tools.empty() ? "" : ", ") + finding.tool;
            }
            row.push_back(gate::toString(analysis.classification.bound));
            row.push_back(tools.empty() ? nothing : tools);
        } else {
            row.insert(row.end(), 2, nothing);
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

Table referenceTable(const Lineage &lineage)
{
    Table table{{{"State"},
                 {"Reference"},
                 {"Version"},
                 {"Its latency in the same rounds", true},
                 {"State against it", true}},
                {}};
    if (areColumns(referencesOf(lineage)))
        return table;
    for (const State &state : lineage.states) {
        const gate::Trial *trial = lineage.trialOf(state);
        if (!isTimed(trial))
            continue;
        for (const gate::Comparison &comparison : trial->verdict.comparisons) {
            if (comparison.against != "parent")
                table.rows.push_back({state.id, comparison.against, comparison.subject,
                                      durationText(comparison.otherNs, 4, Zeros::Kept),
                                      speedupText(comparison.speedup)});
        }
    }
    return table;
}

/// "+45 −12"
std::string changedLines(const Lineage &lineage, const lineage::Transition &step)
{
    const State *from = lineage.findState(step.from);
    const State *to = lineage.findState(step.to);
    if (!from || !to)
        return nothing;
    const Result<std::string> left = kernel::readCandidateText(lineage.directory / from->file);
    const Result<std::string> right = kernel::readCandidateText(lineage.directory / to->file);
    const auto blocks = left && right ? diff::changedBlocks(*left, *right, false, {}) : std::nullopt;
    if (!blocks)
        return nothing;
    int added = 0;
    int removed = 0;
    for (const diff::Block &block : *blocks) {
        removed += block.left.count;
        added += block.right.count;
    }
    return "+" + std::to_string(added) + " −" + std::to_string(removed);
}

Table stepTable(const Lineage &lineage)
{
    Table table{
        {{"Step"}, {"Category"}, {"Where"}, {"Intent"}, {"Lines", true}, {"Gain, paired", true}, {"Card"}},
        {}};
    for (const lineage::Transition &step : lineage.transitions) {
        const State *to = lineage.findState(step.to);
        table.rows.push_back({step.from + " → " + step.to, step.category, step.locus, step.summary,
                              changedLines(lineage, step),
                              pairedText(to ? lineage.trialOf(*to) : nullptr, "parent"),
                              step.card.empty() ? nothing : step.card});
    }
    return table;
}

Table attemptTable(const Lineage &lineage)
{
    Table table{{{"Attempt"},
                 {"From"},
                 {"Title"},
                 {"Category"},
                 {"Latency or verdict", true},
                 {"Against its parent", true},
                 {"Why it was rejected"}},
                {}};
    const std::string device = lineage::deviceOf(lineage);
    for (const lineage::Attempt &attempt : lineage.attempts) {
        const gate::Trial *trial = lineage.trialOf(attempt);
        table.rows.push_back({attempt.id, attempt.parent, attempt.title, attempt.category,
                              latencyOrVerdict(device, trial), pairedText(trial, "parent"), attempt.reason});
    }
    return table;
}

Table branchTable(const Lineage &lineage)
{
    Table table{
        {{"Tried from"}, {"File"}, {"Recorded"}, {"Latency or verdict", true}, {"Against its parent", true}},
        {}};
    const std::string device = lineage::deviceOf(lineage);
    for (const lineage::Branch &branch : lineage.branches) {
        const gate::Trial *trial = lineage.findTrial(branch.trial);
        table.rows.push_back({branch.parent, branch.file, trial ? trial->time.substr(0, 10) : nothing,
                              latencyOrVerdict(device, trial), pairedText(trial, "parent")});
    }
    return table;
}

void addFindings(Document &document, const Lineage &lineage)
{
    std::string bestReason;
    Table table{{{"State"}, {"Tool"}, {"Kernel"}, {"Finding"}}, {}};
    for (const State &state : lineage.states) {
        const gate::Trial *trial = lineage.trialOf(state);
        if (!isTimed(trial))
            continue;
        const gate::Analysis analysis = gate::analyse(*trial);
        if (&state == &lineage.states.back() && !analysis.classification.reason.empty()) {
            bestReason = state.id + ": " + analysis.classification.reason;
            if (const std::string both = gate::bothIntensities(*trial); !both.empty())
                bestReason += ' ' + both;
        }
        for (const gate::ToolFinding &finding : analysis.findings)
            table.rows.push_back(
                {state.id, finding.tool, finding.kernel.empty() ? nothing : finding.kernel, finding.text});
    }
    if (bestReason.empty() && table.rows.empty())
        return;
    document.blocks.emplace_back(Heading{"What the profiles say"});
    if (!bestReason.empty())
        document.blocks.emplace_back(Paragraph{std::move(bestReason)});
    if (!table.rows.empty())
        document.blocks.emplace_back(std::move(table));
}

void addSection(Document &document, const char *heading, Table table)
{
    if (table.rows.empty())
        return;
    document.blocks.emplace_back(Heading{heading});
    document.blocks.emplace_back(std::move(table));
}

std::vector<const gate::Trial *> namedTrials(const Lineage &lineage)
{
    std::vector<const gate::Trial *> trials;
    const auto add = [&trials](const gate::Trial *trial) {
        if (trial)
            trials.push_back(trial);
    };
    for (const State &state : lineage.states)
        add(lineage.trialOf(state));
    for (const lineage::Attempt &attempt : lineage.attempts)
        add(lineage.trialOf(attempt));
    return trials;
}

Facts lineageFacts(const Lineage &lineage)
{
    Facts facts;
    facts.add("Lineage", lineage.key());
    facts.add("Origin", lineage.origin);
    std::string termination = lineage.termination;
    std::replace(termination.begin(), termination.end(), '_', ' ');
    facts.add("Ended", termination + (lineage.reason.empty() ? "" : ": " + lineage.reason));
    facts.add("Written by", lineage.run.empty() ? "hand" : "run " + lineage.run);
    facts.add("Size", std::to_string(lineage.states.size()) + " states, "
                          + std::to_string(lineage.attempts.size()) + " rejected attempts, "
                          + std::to_string(lineage.branches.size()) + " branches, "
                          + std::to_string(lineage.trials.size()) + " trials");
    addEnvironment(facts, namedTrials(lineage));
    return facts;
}

} // namespace

Document lineageReport(const Workspace &workspace, const Lineage &lineage)
{
    Document document{lineage.title.empty() ? lineage.key() : lineage.title,
                      "Lineage " + lineage.key() + ", from the recorded trials of the gate",
                      {}};
    if (lineage.states.empty()) {
        document.blocks.emplace_back(lineageFacts(lineage));
        document.blocks.emplace_back(
            Paragraph{"This lineage has no states yet: there is nothing to report."});
        return document;
    }
    document.blocks.emplace_back(Paragraph{headline(lineage)});
    document.blocks.emplace_back(Figure{
        chainFigure,
        "Latency of each state on a logarithmic axis; above each the speedup against its parent. The marks are named above "
        "the picture; what has no latency on this device stands below the axis."});
    addContract(document, workspace, lineage);
    document.blocks.emplace_back(Heading{"Where it comes from and where it ran"});
    document.blocks.emplace_back(lineageFacts(lineage));
    document.blocks.emplace_back(Heading{"States"});
    document.blocks.emplace_back(Paragraph{
        "Latencies are medians with half the width of their 95 % interval. Speedups are T_other / T_state with 95 % intervals, more than 1 is "
        "faster: against the parent and the references from paired rounds of one trial; against "
        + lineage.states.front().id
        + " the ratio of the medians of two trials, between the ratios of the far ends of their intervals."});
    document.blocks.emplace_back(stateTable(lineage));
    addSection(document, "Against each reference", referenceTable(lineage));
    addSection(document, "Steps", stepTable(lineage));
    addExplanations(document, workspace, lineage);
    addRoofline(document, lineage);
    addSection(document, "Rejected attempts", attemptTable(lineage));
    addSection(document, "SkillCards", cardTable(workspace, lineage));
    addRoundtrips(document, lineage);
    addFindings(document, lineage);
    addSection(document, "Branches", branchTable(lineage));
    document.blocks.emplace_back(Figure{
        trialsFigure,
        "The trials that stand for states and attempts, in the order recorded: speedup, and the running best."});
    addSection(document, "Trials", trialTable(lineage));
    document.blocks.emplace_back(Heading{"How to look again"});
    document.blocks.emplace_back(lineageCommands(lineage));
    if (!lineage.notices.empty()) {
        document.blocks.emplace_back(Heading{"Notices"});
        for (const std::string &notice : lineage.notices)
            document.blocks.emplace_back(Paragraph{notice});
    }
    return document;
}

} // namespace klineage::report
