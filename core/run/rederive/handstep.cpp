// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/rederive/handstep.h"

#include "core/files/atomicfile.h"
#include "core/files/tomlcomments.h"
#include "core/kernel/candidatetext.h"
#include "core/lineage/rederived.h"
#include "core/talk/reply.h"

#include <system_error>
#include <utility>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t maxTaskBytes = std::size_t{1} << 20;
constexpr std::size_t maxPromptBytes = std::size_t{64} << 20;

/// The sentence that names the step, unless it holds code.
std::string intentOf(const lineage::Transition &transition)
{
    const std::string &summary = transition.summary;
    for (const char *mark : {"`", "{", "}", "==", "//", "->", "();", "\n"}) {
        if (summary.find(mark) != std::string::npos)
            return {};
    }
    return summary;
}

bool isFile(const fs::path &path)
{
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

bool isBlank(const std::string &text)
{
    return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

Result<std::string> stateText(const lineage::Lineage &lineage, const std::string &id)
{
    const lineage::State *state = lineage.findState(id);
    if (!state)
        return fail(ErrorCode::NotFound, "The lineage " + lineage.key() + " has no state '" + id + "'.");
    return kernel::readCandidateText(lineage.directory / state->file);
}

/// Empty when there is no such file, or nothing in it.
Result<std::string> readIfThere(const fs::path &path, std::size_t limit)
{
    if (!isFile(path))
        return std::string();
    Result<std::string> text = files::readFile(path, limit);
    return text && isBlank(*text) ? std::string() : text;
}

} // namespace

Result<std::string> readTask(const lineage::Lineage &lineage)
{
    const fs::path workload = lineage.directory.parent_path().parent_path() / "workload.toml";
    const Result<std::string> text = files::readFile(workload, maxTaskBytes);
    return text ? Result<std::string>(files::withoutTomlComments(*text)) : text;
}

Result<HandStep> findHandStep(const lineage::Lineage &lineage, const std::string &task,
                              const fs::path &folder, const lineage::Transition &transition)
{
    HandStep step{transition};
    Result<std::string> simpler = stateText(lineage, transition.from);
    Result<std::string> stronger = stateText(lineage, transition.to);
    for (const Result<std::string> *text : {&simpler, &stronger}) {
        if (!*text)
            return tl::unexpected(text->error());
    }
    Rederivation &wanted = step.wanted;
    wanted.simpler = std::move(*simpler);
    wanted.stronger = std::move(*stronger);
    wanted.category = transition.category;
    wanted.locus = transition.locus;
    wanted.intent = intentOf(transition);
    wanted.workload = task;
    wanted.platform = lineage.platform;
    wanted.planExample = true;
    wanted.within = lineage::rederivedWithin;
    const Result<Conversation> conversation = beginRederivation(wanted, lineage.surface);
    if (!conversation)
        return tl::unexpected(conversation.error());
    step.prompt = handPrompt(*conversation);

    for (int number = 0; number <= wanted.repairs; ++number) {
        HandTry next = handTry(folder, lineage, transition.to, number);
        if (number == 0 || isFile(next.prompt))
            step.current = std::move(next);
    }
    Result<std::string> prompt = readIfThere(step.current.prompt, maxPromptBytes);
    Result<std::string> reply = readIfThere(step.current.reply, maxPromptBytes);
    for (const Result<std::string> *text : {&prompt, &reply}) {
        if (!*text)
            return tl::unexpected(text->error());
    }
    step.currentPrompt = std::move(*prompt);
    step.reply = std::move(*reply);
    return step;
}

HandAnswer handAnswer(const HandStep &step, kernel::Surface surface)
{
    if (step.currentPrompt.empty())
        return {{}, "There is no prompt '" + step.current.prompt.filename().string() + "'."};
    Result<std::string> text = candidateIn(step.reply, surface);
    if (!text)
        return {{}, text.error().message};
    std::string problem = unchangedProblem(step.wanted, *text);
    return {std::move(*text), std::move(problem)};
}

} // namespace klineage::run
