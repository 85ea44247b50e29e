// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/why/whystep.h"

#include "core/diff/diff.h"
#include "core/files/atomicfile.h"
#include "core/lineage/table.h"
#include "core/why/codelines.h"

#include <algorithm>

namespace klineage::why {

namespace {

constexpr std::size_t largestFile = 64u << 20;

Side sideOf(const lineage::RowRef &row)
{
    return {row.id.starts_with("trial:") ? "this trial" : row.id, row.file, *row.trial};
}

/// A side's text, and which of its lines have code.
struct Text {
    Text(const std::string &read, kernel::Surface surface)
        : text(read)
        , code(codeLines(read, surface))
    {}

    [[nodiscard]] bool isCode(std::int32_t line) const
    {
        return line > 0 && static_cast<std::size_t>(line) < code.size()
               && code[static_cast<std::size_t>(line)];
    }

    const std::string &text;
    std::vector<bool> code; ///< by 1-based line
};

/// Where code stands beside a comment it is gone: rows of a diff pair what stands at one place.
gate::SameLines sameLines(const Text &before, const Text &after, const std::stop_token &stop)
{
    const diff::Diff diff = diff::compare(before.text, after.text, {.detectMoves = false}, stop);
    gate::SameLines same(1, 0);
    if (diff.cancelled)
        return {};
    for (const diff::Row &row : diff.rows) {
        if (row.leftLine < 0)
            continue;
        same.resize(static_cast<std::size_t>(row.leftLine) + 2, 0);
        if (before.isCode(row.leftLine + 1) == after.isCode(row.rightLine + 1))
            same.back() = row.rightLine + 1; // filler, -1, becomes 0
    }
    return same;
}

/// Lines to look at have code; what lies beyond the file came from a header.
void lookAtCode(gate::Cause &cause, const Text &before, const Text &after)
{
    for (gate::MovedLine &moved : cause.lines) {
        int &line = moved.after > 0 ? moved.after : moved.before;
        line = nearestCode(moved.after > 0 ? after.code : before.code, line);
    }
    std::erase_if(cause.lines, [](const gate::MovedLine &moved) { return moved.line() == 0; });
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
    const std::string &device = question.after.trial.environment.device;
    if (workload)
        question.workload = *workload;
    if (!step->left)
        question.noStep = question.after.name
                          + " has nothing before it to be compared with: choose another row, or a baseline.";
    else if (!step->left->trial)
        question.noStep = step->left->id + " has no recorded trial to compare with.";
    else if (const std::string other = lineage::elsewhere(step->left->trial, device); !other.empty())
        question.noStep = step->left->id + " was recorded on " + other + " and " + question.after.name
                          + " on " + device + ": figures of two devices do not explain a step.";
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
    const auto explain = [&question](const gate::SameLines &same) {
        return gate::explainStep(
            {question.before->name, question.before->trial}, {question.after.name, question.after.trial},
            question.isParent ? question.after.trial.comparison("parent") : nullptr, same);
    };
    if (!before || !after) {
        out.explanation = explain({});
        return out;
    }
    const Text older(*before, question.before->trial.surface);
    const Text newer(*after, question.after.trial.surface);
    out.explanation = explain(sameLines(older, newer, stop));
    for (gate::Cause &cause : out.explanation.causes)
        lookAtCode(cause, older, newer);
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
