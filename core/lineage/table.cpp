// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace klineage::lineage {

namespace {

bool isTimed(const gate::Trial *trial)
{
    return trial && trial->verdict.status == gate::VerdictStatus::Correct && trial->latencyNs.value > 0;
}

std::optional<gate::Interval> measured(const gate::Comparison *comparison)
{
    if (!comparison || comparison->speedup.value <= 0)
        return std::nullopt;
    return comparison->speedup;
}

/// The first item of each name; the lineage's own look-ups go through all of them each time.
template <typename T, typename NameOf>
std::unordered_map<std::string_view, const T *> indexOf(const std::vector<T> &items, NameOf &&nameOf)
{
    std::unordered_map<std::string_view, const T *> index;
    index.reserve(items.size());
    for (const T &item : items)
        index.emplace(nameOf(item), &item);
    return index;
}

/// Newest first.
template <typename T>
std::unordered_map<std::string_view, std::vector<const T *>> byParent(const std::vector<T> &items)
{
    std::unordered_map<std::string_view, std::vector<const T *>> index;
    for (auto item = items.rbegin(); item != items.rend(); ++item)
        index[item->parent].push_back(&*item);
    return index;
}

template <typename Value>
Value lookUp(const std::unordered_map<std::string_view, Value> &index, std::string_view name)
{
    const auto found = index.find(name);
    return found == index.end() ? Value{} : found->second;
}

/// By id; what has no trial names none.
std::unordered_map<std::string_view, const gate::Trial *> trialsOf(const Lineage &lineage)
{
    auto trials =
        indexOf(lineage.trials, [](const gate::Trial &trial) { return std::string_view(trial.id); });
    trials.erase(std::string_view());
    return trials;
}

TableRow makeRow(TableRow::Kind kind, std::string id, const std::string &title, const std::string &parent,
                 const std::string &file, const gate::Trial *trial, const gate::Trial *baseline,
                 const std::string &device)
{
    TableRow row;
    row.kind = kind;
    row.id = std::move(id);
    row.title = title;
    row.parent = parent;
    row.file = file;
    row.trial = trial;
    row.elsewhere = elsewhere(trial, device);
    if (!isTimed(trial))
        return row;
    row.latencyNs = trial->latencyNs;
    row.speedupToParent = measured(trial->comparison("parent"));
    if (isTimed(baseline) && elsewhere(trial, baseline->environment.device).empty())
        row.speedupToBaseline = baseline->latencyNs.value / trial->latencyNs.value;
    if (const gate::Comparison *reference = trial->referenceComparison()) {
        row.speedupToReference = measured(reference);
        row.reference = reference->subject.empty() ? reference->against : reference->subject;
    }
    return row;
}

} // namespace

std::string deviceOf(const Lineage &lineage)
{
    const auto trials = trialsOf(lineage);
    std::vector<const gate::Trial *> timed; // the strongest state first
    std::map<std::string_view, int> states;
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state) {
        if (const gate::Trial *trial = lookUp(trials, state->trial); isTimed(trial)) {
            timed.push_back(trial);
            ++states[trial->environment.device];
        }
    }
    if (timed.empty()) {
        const auto first = std::find_if(lineage.trials.begin(), lineage.trials.end(),
                                        [](const gate::Trial &trial) { return isTimed(&trial); });
        return first == lineage.trials.end() ? std::string() : first->environment.device;
    }
    std::string_view device;
    for (const gate::Trial *trial : timed) {
        if (device.empty() || states[trial->environment.device] > states[device])
            device = trial->environment.device;
    }
    return std::string(device);
}

std::string elsewhere(const gate::Trial *trial, std::string_view device)
{
    return !trial || device.empty() || trial->environment.device == device ? std::string()
                                                                           : trial->environment.device;
}

std::vector<TableRow> lineageTable(const Lineage &lineage, std::string_view baselineState)
{
    const State *baseline = baselineState.empty() ? nullptr : lineage.findState(baselineState);
    if (!baseline && !lineage.states.empty())
        baseline = &lineage.states.front();
    const gate::Trial *baselineTrial = baseline ? lineage.trialOf(*baseline) : nullptr;
    const std::string device = deviceOf(lineage);

    const auto trials = trialsOf(lineage);
    const auto steps =
        indexOf(lineage.transitions, [](const Transition &step) { return std::string_view(step.to); });
    const auto branches = byParent(lineage.branches);
    const auto attempts = byParent(lineage.attempts);
    std::vector<TableRow> rows;
    for (std::size_t i = lineage.states.size(); i-- > 0;) {
        const State &state = lineage.states[i];
        for (const Branch *branch : lookUp(branches, state.id))
            rows.push_back(makeRow(TableRow::Kind::Branch, "trial:" + branch->trial, branch->file, state.id,
                                   branch->file, lookUp(trials, branch->trial), baselineTrial, device));
        for (const Attempt *attempt : lookUp(attempts, state.id)) {
            rows.push_back(makeRow(TableRow::Kind::Attempt, attempt->id, attempt->title, state.id,
                                   attempt->file, lookUp(trials, attempt->trial), baselineTrial, device));
            rows.back().attempt = attempt;
        }
        const std::string parent = i > 0 ? lineage.states[i - 1].id : std::string();
        rows.push_back(makeRow(TableRow::Kind::State, state.id, state.title, parent, state.file,
                               lookUp(trials, state.trial), baselineTrial, device));
        rows.back().step = lookUp(steps, state.id);
    }
    return rows;
}

gate::Interval ratioOfMedians(const gate::Interval &otherNs, const gate::Interval &ownNs)
{
    if (otherNs.low <= 0 || ownNs.low <= 0)
        return {};
    return {otherNs.value / ownNs.value, otherNs.low / ownNs.high, otherNs.high / ownNs.low};
}

GeometricMean referenceGeometricMean(const std::vector<Lineage> &lineages)
{
    GeometricMean mean;
    double sumOfLogs = 0;
    for (const Lineage &lineage : lineages) {
        const gate::Trial *trial =
            lineage.states.size() < 2 ? nullptr : lineage.trialOf(lineage.states.back());
        const auto speedup = isTimed(trial) ? measured(trial->referenceComparison()) : std::nullopt;
        if (speedup) {
            sumOfLogs += std::log(speedup->value);
            ++mean.counted;
        } else {
            ++mean.missing;
        }
    }
    if (mean.counted > 0)
        mean.value = std::exp(sumOfLogs / mean.counted);
    return mean;
}

} // namespace klineage::lineage
