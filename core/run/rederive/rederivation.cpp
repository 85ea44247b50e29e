// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/rederive/rederivation.h"

#include "core/lineage/rederived.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"
#include "core/talk/reply.h"
#include "core/talk/trialtext.h"

namespace klineage::run {

namespace {

using lineage::Match;

Result<std::string> systemPrompt(const Rederivation &wanted, kernel::Surface surface)
{
    Result<std::string> format = prompt("deoptimize-candidate", {{"surface", kernel::toString(surface)}});
    if (format && wanted.planExample && surface->planExample) {
        const Result<std::string> example = prompt(surface->planExample);
        if (!example)
            return example;
        *format += '\n' + *example;
    }
    if (!format)
        return format;
    return prompt("rederive-system", {{"workload", fenced(wanted.workload, "toml")},
                                      {"platform", wanted.platform},
                                      {"candidate_format", *format}});
}

Result<std::string> requestPrompt(const Rederivation &wanted)
{
    Result<std::string> request = prompt(
        "rederive-request",
        {{"candidate", fenced(wanted.simpler, "c")}, {"category", wanted.category}, {"locus", wanted.locus}});
    if (!request || wanted.intent.empty())
        return request;
    const Result<std::string> intent = prompt("rederive-intent", {{"intent", wanted.intent}});
    return intent ? Result<std::string>(*request + *intent) : intent;
}

/// "takes 1.040× as long as …": of a match that was timed.
std::string takesText(const gate::Trial &match, const char *adverb, const std::string &what)
{
    const gate::Comparison *comparison = match.comparison("parent");
    return std::string("takes ") + adverb + factorText(1 / comparison->speedup.value) + " as long as " + what;
}

std::string unsteadyText(const gate::Trial &match, const std::string &what)
{
    const gate::Comparison *comparison = match.comparison("parent");
    if (!comparison || comparison->speedup.value <= 0)
        return "It is right, but it was not compared with " + what + ": there is no timing.";
    return "It is right, but the device is too unsteady to compare it with " + what
           + ": the 95 % interval of their ratio is " + factorText(comparison->speedup.low) + " to "
           + factorText(comparison->speedup.high) + '.';
}

} // namespace

Result<Conversation> beginRederivation(const Rederivation &wanted, kernel::Surface surface)
{
    Result<std::string> system = systemPrompt(wanted, surface);
    if (!system)
        return tl::unexpected(system.error());
    Result<std::string> request = requestPrompt(wanted);
    if (!request)
        return tl::unexpected(request.error());
    Conversation conversation;
    conversation.purpose = "rederive";
    conversation.system = std::move(*system);
    conversation.user(std::move(*request), true);
    return conversation;
}

Result<std::string> repairRequest(const Rederivation &wanted, const std::string &problem)
{
    return prompt("rederive-repair",
                  {{"problem", problem}, {"category", wanted.category}, {"locus", wanted.locus}});
}

std::string unchangedProblem(const Rederivation &wanted, const std::string &text)
{
    if (policy::normalizedCode(text) != policy::normalizedCode(wanted.simpler))
        return {};
    return "Your code is the one that you were given: nothing was applied.";
}

const char *toString(Judgement::Outcome outcome)
{
    switch (outcome) {
    case Judgement::Outcome::Accepted:
        return "accepted";
    case Judgement::Outcome::Rejected:
        return "rejected";
    case Judgement::Outcome::Stronger:
        return "stronger";
    case Judgement::Outcome::Unsteady:
        return "unsteady";
    }
    return "rejected";
}

std::optional<Judgement> judgeAlone(const gate::Trial &trial)
{
    if (trial.verdict.status == gate::VerdictStatus::Correct)
        return std::nullopt;
    return Judgement{Judgement::Outcome::Rejected, verdictLine(trial), policy::trialText(trial)};
}

Judgement judgeMatch(const Rederivation &wanted, const gate::Trial &trial, const gate::Trial &match)
{
    if (match.verdict.status != gate::VerdictStatus::Correct)
        return {Judgement::Outcome::Rejected, verdictLine(match), policy::trialText(match)};
    const std::string stronger = "the kernel that it should match";
    const std::string done = "what the optimization reaches when it is done well";
    const std::string given = "\nAgainst the kernel that you were given:\n" + policy::trialText(trial);
    switch (lineage::matchOf(match, wanted.within)) {
    case Match::Unsteady:
        return {Judgement::Outcome::Unsteady, unsteadyText(match, stronger),
                unsteadyText(match, done) + given};
    case Match::Slower:
        return {Judgement::Outcome::Rejected, "It is right, but " + takesText(match, "", stronger) + '.',
                "It is right, but " + takesText(match, "", done) + '.' + given};
    case Match::Faster:
        if (!wanted.both)
            break;
        return {Judgement::Outcome::Stronger,
                "It is right, but " + takesText(match, "only ", stronger) + ": a state of its own.",
                "It is right, but " + takesText(match, "only ", "what the optimization alone reaches")
                    + ": more than that was applied. Apply it alone." + given};
    case Match::Equal:
        break;
    }
    return {Judgement::Outcome::Accepted, "It matches: " + figuresText(match) + '.', {}};
}

} // namespace klineage::run
