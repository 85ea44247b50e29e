// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/deoptimize/rederive.h"

#include "core/lineage/rederived.h"
#include "core/talk/figures.h"

namespace klineage::run {

namespace {

constexpr int mostComparisons = 3;

class Rederiver
{
public:
    Rederiver(ActiveRun &run, const Rederivation &wanted)
        : m_run(run)
        , m_wanted(wanted)
    {}

    Result<Rederived> run()
    {
        Result<Conversation> begun = beginRederivation(m_wanted, m_run.surface());
        if (!begun)
            return tl::unexpected(begun.error());
        m_conversation = std::move(*begun);
        for (int attempt = 0;; ++attempt) {
            if (Status tried = tryOnce(); !tried)
                return tl::unexpected(tried.error());
            if (m_result.accepted || attempt >= m_wanted.repairs)
                return std::move(m_result);
            Result<std::string> repair = repairRequest(m_wanted, m_feedback);
            if (!repair)
                return tl::unexpected(repair.error());
            m_conversation.user(std::move(*repair));
        }
    }

private:
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
        if (const std::string problem = unchangedProblem(m_wanted, m_result.text); !problem.empty())
            return reject("failed", "The code is the one that was given: nothing was applied.", problem,
                          nullptr);
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
        if (const std::optional<Judgement> wrong = judgeAlone(*trial))
            return reject("rejected", wrong->reason, wrong->feedback, &m_result.trial);
        const Result<gate::Trial> match = compareWithStronger();
        if (!match)
            return tl::unexpected(match.error());
        m_result.match = *match;
        const Judgement judgement = judgeMatch(m_wanted, *trial, *match);
        if (judgement.outcome != Judgement::Outcome::Accepted)
            return reject("rejected", judgement.reason, judgement.feedback, &m_result.match);
        m_result.accepted = true;
        m_result.reason.clear();
        return step("accepted", judgement.reason, &m_result.match);
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
            const bool isTimed = match->comparison("parent") != nullptr;
            if (!isTimed || lineage::matchOf(*match, m_wanted.within) != lineage::Match::Unsteady
                || attempt == mostComparisons)
                return match;
        }
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

} // namespace klineage::run
