// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/deoptimize/rederive.h"

#include "core/talk/figures.h"
#include "core/talk/prompt.h"
#include "core/talk/reply.h"
#include "core/talk/trialtext.h"

namespace klineage::run {

namespace {

constexpr int mostComparisons = 3;

/// Whether the interval is narrow enough to tell a difference of `within`.
bool isSharp(const gate::Interval &speedup, double within)
{
    return (speedup.high - speedup.low) / 2 <= within * speedup.value;
}

class Rederiver
{
public:
    Rederiver(ActiveRun &run, const Rederivation &wanted)
        : m_run(run)
        , m_wanted(wanted)
    {}

    Result<Rederived> run()
    {
        if (Status begun = begin(); !begun)
            return tl::unexpected(begun.error());
        for (int attempt = 0;; ++attempt) {
            if (Status tried = tryOnce(); !tried)
                return tl::unexpected(tried.error());
            if (m_result.accepted || attempt >= m_wanted.repairs)
                return std::move(m_result);
            Result<std::string> repair =
                prompt("rederive-repair",
                       {{"problem", m_feedback}, {"category", m_wanted.category}, {"locus", m_wanted.locus}});
            if (!repair)
                return tl::unexpected(repair.error());
            m_conversation.user(std::move(*repair));
        }
    }

private:
    Status begin()
    {
        const char *surface = kernel::toString(m_run.surface());
        const Result<std::string> format = prompt("deoptimize-candidate", {{"surface", surface}});
        if (!format)
            return tl::unexpected(format.error());
        Result<std::string> system =
            prompt("rederive-system", {{"workload", fenced(m_wanted.workload, "toml")},
                                       {"platform", m_wanted.platform},
                                       {"candidate_format", *format}});
        if (!system)
            return tl::unexpected(system.error());
        Result<std::string> request =
            prompt("rederive-request", {{"candidate", fenced(m_wanted.simpler, "c")},
                                        {"category", m_wanted.category},
                                        {"locus", m_wanted.locus}});
        if (!request)
            return tl::unexpected(request.error());
        m_conversation.purpose = "rederive";
        m_conversation.system = std::move(*system);
        m_conversation.user(std::move(*request), true);
        return {};
    }

    Status tryOnce()
    {
        const ActiveRun::Reader<std::string> read = [this](const std::string &text) {
            return candidateIn(text, m_run.surface());
        };
        const auto answer = m_run.askFor(m_conversation, "asking to derive it again", read);
        if (!answer)
            return tl::unexpected(answer.error());
        if (!answer->value)
            return reject("failed", answer->problem, answer->problem, nullptr);
        m_result.text = *answer->value;
        if (policy::normalizedCode(m_result.text) == policy::normalizedCode(m_wanted.simpler))
            return reject("failed", "The code is the one that was given: nothing was applied.",
                          "Your code is the one that you were given: nothing was applied.", nullptr);
        return judge();
    }

    Status judge()
    {
        Result<gate::Trial> trial =
            m_run.gate(m_result.text, m_wanted.simpler, "gating what was derived again");
        if (!trial)
            return tl::unexpected(trial.error());
        m_result.trial = *trial;
        m_result.trials.emplace_back(*trial, m_result.text);
        if (trial->verdict.status != gate::VerdictStatus::Correct)
            return reject("rejected", verdictLine(*trial), policy::trialText(*trial), &m_result.trial);
        const Result<gate::Trial> match = compareWithStronger();
        if (!match)
            return tl::unexpected(match.error());
        m_result.match = *match;
        if (match->verdict.status != gate::VerdictStatus::Correct)
            return reject("rejected", verdictLine(*match), policy::trialText(*match), &m_result.match);
        if (!matchesParent(*match, m_wanted.within))
            return reject("rejected", tooSlow(*match, "the kernel that it should match"),
                          tooSlow(*match, "what the optimization reaches when it is done well")
                              + "\nAgainst the kernel that you were given:\n" + policy::trialText(*trial),
                          &m_result.match);
        m_result.accepted = true;
        m_result.reason.clear();
        return step("accepted", "It matches: " + figuresText(*match) + '.', &m_result.match);
    }

    /// On an unsteady machine an interval can be too wide to tell; the comparison is made again then.
    Result<gate::Trial> compareWithStronger()
    {
        for (int attempt = 1;; ++attempt) {
            Result<gate::Trial> match =
                m_run.gate(m_result.text, m_wanted.stronger, "comparing it with the stronger kernel");
            if (!match)
                return match;
            m_result.trials.emplace_back(*match, m_result.text);
            const gate::Comparison *comparison = match->comparison("parent");
            if (!comparison || isSharp(comparison->speedup, m_wanted.within) || attempt == mostComparisons)
                return match;
        }
    }

    [[nodiscard]] std::string tooSlow(const gate::Trial &match, const std::string &what) const
    {
        const gate::Comparison *comparison = match.comparison("parent");
        if (!comparison || comparison->speedup.value <= 0)
            return "It is right, but it was not compared with " + what + ": there is no timing.";
        if (!isSharp(comparison->speedup, m_wanted.within))
            return "It is right, but the device is too unsteady to compare it with " + what
                   + ": the 95 % interval of their ratio is " + factorText(comparison->speedup.low) + " to "
                   + factorText(comparison->speedup.high) + '.';
        return "It is right, but takes " + factorText(1 / comparison->speedup.value) + " as long as " + what
               + '.';
    }

    Status reject(const char *outcome, const std::string &reason, const std::string &feedback,
                  const gate::Trial *trial)
    {
        m_result.reason = sentence(reason);
        m_feedback = feedback;
        return step(outcome, m_result.reason, trial);
    }

    Status step(const char *outcome, const std::string &reason, const gate::Trial *trial)
    {
        StepRecord step;
        step.action = "rederive";
        step.title = m_wanted.category + " at " + m_wanted.locus;
        step.outcome = outcome;
        step.reason = sentence(reason);
        return m_run.step(std::move(step), trial);
    }

    ActiveRun &m_run;
    const Rederivation &m_wanted;
    Conversation m_conversation;
    Rederived m_result;
    std::string m_feedback;
};

} // namespace

Result<Rederived> rederive(ActiveRun &run, const Rederivation &wanted)
{
    return Rederiver(run, wanted).run();
}

bool matchesParent(const gate::Trial &trial, double within)
{
    const gate::Comparison *comparison = trial.comparison("parent");
    return comparison && comparison->speedup.value > 0 && isSharp(comparison->speedup, within)
           && 1 / comparison->speedup.value <= 1 + within;
}

} // namespace klineage::run
