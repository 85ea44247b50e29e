// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/why/whystep.h"

#include "core/diff/diff.h"
#include "core/files/atomicfile.h"

namespace klineage::why {

namespace {

constexpr std::size_t largestFile = 64u << 20;

Side sideOf(const lineage::RowRef &row)
{
    return {row.id.starts_with("trial:") ? "this trial" : row.id, row.file, *row.trial};
}

gate::SameLines sameLines(const std::string &before, const std::string &after, const std::stop_token &stop)
{
    const diff::Diff diff = diff::compare(before, after, {.detectMoves = false}, stop);
    gate::SameLines same(1, 0);
    if (diff.cancelled)
        return {};
    for (const diff::Row &row : diff.rows) {
        if (row.leftLine < 0)
            continue;
        same.resize(static_cast<std::size_t>(row.leftLine) + 2, 0);
        same.back() = row.rightLine + 1; // filler, -1, becomes 0
    }
    return same;
}

/// For the timed case with the trial's tunables; nothing when the plan needs what was not recorded.
std::optional<kernel::ResolvedPlan> planOf(const Side &side, const std::string &text,
                                           const workload::Workload &workload)
{
    const auto candidate = kernel::parseCandidate(text, side.file.filename().string());
    const workload::Case &timed = workload.cases.front();
    const auto buffers = workload.buffersOf(timed);
    if (!candidate || !buffers)
        return {};
    kernel::Bindings bindings = workload.bindings(timed);
    bindings.merge(gate::recordedDeviceFacts(side.trial));
    for (const auto &[name, value] : candidate->defaultTunables())
        bindings[name] = value;
    for (const auto &[name, value] : side.trial.tunables)
        bindings[name] = value;
    auto plan = kernel::resolvePlan(*candidate, *buffers, bindings);
    return plan ? std::optional(std::move(*plan)) : std::nullopt;
}

std::vector<gate::LaunchNumbers> launchesOf(const Side &side, const Result<std::string> &text,
                                            const std::optional<workload::Workload> &workload)
{
    const auto plan =
        text && workload && !workload->cases.empty() ? planOf(side, *text, *workload) : std::nullopt;
    return gate::launchNumbers(side.trial, plan ? &*plan : nullptr);
}

} // namespace

std::optional<Question> askStep(const lineage::Lineage &lineage, std::string_view row,
                                std::string_view baseline, const workload::Workload *workload)
{
    const auto step = lineage::findStep(lineage, row, baseline);
    if (!step || !step->right.trial)
        return {};
    Question question;
    question.after = sideOf(step->right);
    if (workload)
        question.workload = *workload;
    if (!step->left)
        question.noStep = question.after.name
                          + " has nothing before it to be compared with: choose another row, or a baseline.";
    else if (!step->left->trial)
        question.noStep = step->left->id + " has no recorded trial to compare with.";
    else
        question.before = sideOf(*step->left);
    question.isParent = step->left && step->left->id == step->right.parent;
    return question;
}

Answer answer(const Question &question, const std::stop_token &stop)
{
    Answer out;
    const Result<std::string> after = files::readFile(question.after.file, largestFile);
    out.after = launchesOf(question.after, after, question.workload);
    out.explanation.afterName = question.after.name;
    out.explanation.nothing = question.noStep;
    if (!question.before)
        return out;
    const Result<std::string> before = files::readFile(question.before->file, largestFile);
    out.before = launchesOf(*question.before, before, question.workload);
    const gate::SameLines same = before && after ? sameLines(*before, *after, stop) : gate::SameLines();
    out.explanation = gate::explainStep(
        {question.before->name, question.before->trial}, {question.after.name, question.after.trial},
        question.isParent ? question.after.trial.comparison("parent") : nullptr, same);
    return out;
}

Chain chainTo(const lineage::Lineage &lineage, std::string_view row)
{
    Chain chain;
    const auto target = lineage::findRow(lineage, row);
    const bool isState = lineage.findState(row) != nullptr;
    const std::string last = isState || !target ? std::string(row) : target->parent;
    auto state = lineage.states.begin();
    const auto take = [&] { chain.states.push_back({state->id, lineage.trialOf(*state)}); };
    for (bool isBefore = true; isBefore && state != lineage.states.end(); ++state) {
        take();
        isBefore = state->id != last;
    }
    if (target && !isState)
        chain.states.push_back({target->id, target->trial});
    chain.length = chain.states.size();
    for (; state != lineage.states.end(); ++state)
        take();
    return chain;
}

} // namespace klineage::why
