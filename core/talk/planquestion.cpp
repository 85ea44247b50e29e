// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/planquestion.h"

#include "core/talk/prompt.h"
#include "core/talk/reply.h"

namespace klineage::run {

namespace {

std::string quotedText(const std::vector<std::string> &parts)
{
    return '"' + workload::joinList(parts) + '"';
}

std::string guessText(const workload::PlanDraft &draft)
{
    std::string text = "- grid: " + quotedText(draft.grid) + "\n- block: " + quotedText(draft.block) + '\n';
    if (!draft.shared.empty())
        text += "- shared: \"" + draft.shared + "\"\n";
    for (std::size_t i = 0; i < draft.args.size(); ++i)
        text += "- argument " + std::to_string(i + 1) + ": \"" + draft.args[i] + "\"\n";
    for (const kernel::Tunable &tunable : draft.tunables)
        text += "- tunable: " + tunable.name + ", now " + std::to_string(tunable.defaultValue) + '\n';
    return text;
}

std::string problemsText(const std::vector<workload::FieldProblem> &problems)
{
    if (problems.empty())
        return {};
    std::string text = "What is wrong with it:\n\n";
    for (const workload::FieldProblem &problem : problems)
        text +=
            "- " + (problem.field.empty() ? std::string() : problem.field + ": ") + problem.message + '\n';
    return text + '\n';
}

bool isPlan(const std::string &block)
{
    return block.find("[[launch]]") != std::string::npos;
}

/// What stands in the comment of a block that is a whole candidate after all; else the block.
std::string planIn(const std::string &block, const kernel::PlanComment &comment)
{
    if (!block.starts_with(comment.opening))
        return block;
    const std::size_t end = block.find(comment.closing, comment.opening.size());
    return end == std::string::npos ? block
                                    : block.substr(comment.opening.size(), end - comment.opening.size());
}

} // namespace

Result<PlanQuestion> planQuestion(const workload::PlanDraft &draft, const workload::Workload &workload,
                                  const std::vector<workload::FieldProblem> &problems)
{
    const Result<std::string> format =
        prompt("materialize-format", {{"surface", kernel::toString(draft.surface)}});
    if (!format)
        return tl::unexpected(format.error());
    Result<std::string> system =
        prompt("plan-system",
               {{"workload_file", fenced(writeWorkload(workload), "toml")}, {"candidate_format", *format}});
    if (!system)
        return tl::unexpected(system.error());
    Result<std::string> message = prompt("plan-request", {{"kernel", draft.kernel},
                                                          {"code", fenced(draft.code, "")},
                                                          {"guess", guessText(draft)},
                                                          {"problems", problemsText(problems)}});
    if (!message)
        return tl::unexpected(message.error());
    return PlanQuestion{std::move(*system), std::move(*message)};
}

Result<std::string> readPlanReply(std::string_view reply, std::string_view code, kernel::Surface surface)
{
    const Result<policy::Reading> reading = policy::readReply(reply, isPlan);
    if (!reading)
        return tl::unexpected(reading.error());
    if (reading->kind == policy::Reading::Kind::Done)
        return fail(ErrorCode::InvalidInput, "The author gave no plan: " + reading->text);
    const kernel::PlanComment comment = kernel::planCommentOf(surface);
    std::string plan = planIn(reading->text, comment);
    if (!isPlan(plan))
        return fail(ErrorCode::InvalidInput, "The author's block is no plan: it launches nothing.");
    if (plan.find(comment.closing) != std::string::npos)
        return fail(ErrorCode::InvalidInput, "The author's plan holds the end of a comment.");
    if (!plan.starts_with('\n'))
        plan.insert(0, 1, '\n');
    if (plan.find("\nsurface") == std::string::npos)
        plan.insert(0, std::string("\nsurface = \"") + kernel::toString(surface) + "\"\n");
    if (!plan.ends_with('\n'))
        plan += '\n';
    std::string text = comment.opening + plan + comment.closing + '\n';
    text += code;
    if (const Result<kernel::Candidate> candidate = kernel::parseCandidate(text, "plan"); !candidate)
        return fail(ErrorCode::InvalidInput, "The author's plan cannot be used: " + candidate.error().message,
                    candidate.error().detail);
    return text;
}

} // namespace klineage::run
