// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/verify.h"

#include "core/files/sha256.h"

#include <algorithm>
#include <map>

namespace klineage::lineage {

namespace {

class Verifier
{
public:
    explicit Verifier(const Lineage &lineage)
        : m_lineage(lineage)
    {}

    VerifyReport run()
    {
        for (const std::string &notice : m_lineage.notices)
            m_report.findings.push_back({{}, notice});
        std::string parentSha;
        for (std::size_t i = 0; i < m_lineage.states.size(); ++i) {
            const State &state = m_lineage.states[i];
            const std::string sha = checkFile(state.id, state.file);
            checkStateTrial(state, sha, i > 0, parentSha);
            parentSha = sha;
            m_shas[state.id] = sha;
        }
        checkTransitions();
        for (const Attempt &attempt : m_lineage.attempts)
            checkAttempt(attempt);
        return std::move(m_report);
    }

private:
    bool check(bool holds, const std::string &subject, std::string message)
    {
        ++m_report.checks;
        const bool said = std::any_of(m_report.findings.begin(), m_report.findings.end(),
                                      [&](const VerifyFinding &finding) {
                                          return finding.subject == subject && finding.message == message;
                                      });
        if (!holds && !said)
            m_report.findings.push_back({subject, std::move(message)});
        return holds;
    }

    /// The sha-256 of the candidate, or empty.
    std::string checkFile(const std::string &subject, const std::string &file)
    {
        const Result<kernel::Candidate> candidate = kernel::readCandidate(m_lineage.directory / file);
        if (!check(candidate.has_value(), subject, candidate ? std::string() : candidate.error().message))
            return {};
        check(candidate->surface == m_lineage.surface, subject,
              file + " is written for the surface '" + kernel::toString(candidate->surface)
                  + "', the lineage for '" + kernel::toString(m_lineage.surface) + "'.");
        return files::sha256Hex(candidate->source);
    }

    const gate::Trial *checkTrial(const std::string &subject, const std::string &trialId,
                                  const std::string &sha)
    {
        if (!check(!trialId.empty(), subject, "It names no trial; gate it and record the trial."))
            return nullptr;
        const gate::Trial *trial = m_lineage.findTrial(trialId);
        if (!check(trial != nullptr, subject, "Its trial " + trialId + " is not in trials.jsonl."))
            return nullptr;
        check(sha.empty() || trial->candidate == sha, subject,
              "Its file is not the one that trial " + trialId + " measured; gate it again.");
        return trial;
    }

    void checkStateTrial(const State &state, const std::string &sha, bool hasParent,
                         const std::string &parentSha)
    {
        const gate::Trial *trial = checkTrial(state.id, state.trial, sha);
        if (!trial)
            return;
        const bool correct = check(trial->verdict.status == gate::VerdictStatus::Correct, state.id,
                                   std::string("Its trial is '") + gate::toString(trial->verdict.status)
                                       + "'; a state needs 'correct'.");
        if (!correct)
            return;
        checkInterval(state.id, "latency", trial->latencyNs);
        if (const gate::Comparison *reference = trial->referenceComparison())
            checkInterval(state.id, "speedup to " + reference->against, reference->speedup);
        if (!hasParent)
            return;
        const gate::Comparison *step = trial->comparison("parent");
        if (!check(step != nullptr, state.id,
                   "Its trial was not compared with the state before it; gate it with that parent."))
            return;
        checkInterval(state.id, "speedup to the parent", step->speedup);
        check(parentSha.empty() || trial->parent == parentSha, state.id,
              "Its trial was compared with another file than the state before it; gate it with that parent.");
    }

    void checkInterval(const std::string &subject, const std::string &what, const gate::Interval &interval)
    {
        check(interval.low > 0 && interval.low <= interval.value && interval.value <= interval.high, subject,
              "The " + what + " of its trial has no sound interval.");
    }

    void checkTransitions()
    {
        const std::size_t steps = m_lineage.states.empty() ? 0 : m_lineage.states.size() - 1;
        check(m_lineage.transitions.size() == steps, {},
              std::to_string(m_lineage.states.size()) + " states need " + std::to_string(steps)
                  + " transitions; there are " + std::to_string(m_lineage.transitions.size()) + '.');
        for (std::size_t i = 0; i < m_lineage.transitions.size(); ++i) {
            const Transition &transition = m_lineage.transitions[i];
            const std::string subject = transition.from + " → " + transition.to;
            check(i < steps && transition.from == m_lineage.states[i].id
                      && transition.to == m_lineage.states[i + 1].id,
                  subject, "It does not follow the order of the states.");
            check(!transition.category.empty() && !transition.locus.empty() && !transition.summary.empty(),
                  subject, "It lacks a category, a locus or a summary.");
            checkRederived(transition, subject);
        }
    }

    void checkRederived(const Transition &transition, const std::string &subject)
    {
        if (transition.rederived.empty())
            return;
        const std::string sha = checkFile(subject, transition.rederived);
        const auto checkAgainst = [&](const std::string &trialId, const std::string &stateId) {
            const gate::Trial *trial = checkTrial(subject, trialId, sha);
            if (!trial)
                return;
            check(trial->verdict.status == gate::VerdictStatus::Correct, subject,
                  std::string("The trial of its re-derived file is '") + gate::toString(trial->verdict.status)
                      + "'; it needs 'correct'.");
            check(trial->comparison("parent") != nullptr && trial->parent == m_shas[stateId], subject,
                  "The trial " + trialId + " of its re-derived file was not compared with " + stateId
                      + "; gate it with that parent.");
        };
        checkAgainst(transition.rederivedTrial, transition.from);
        checkAgainst(transition.rederivedMatch, transition.to);
    }

    void checkAttempt(const Attempt &attempt)
    {
        const std::string sha = checkFile(attempt.id, attempt.file);
        checkTrial(attempt.id, attempt.trial, sha);
        check(m_lineage.findState(attempt.parent) != nullptr, attempt.id,
              "Its parent '" + attempt.parent + "' is no state.");
    }

    const Lineage &m_lineage;
    std::map<std::string, std::string> m_shas; ///< of the states' files, by id
    VerifyReport m_report;
};

} // namespace

VerifyReport verifyLineage(const Lineage &lineage)
{
    return Verifier(lineage).run();
}

} // namespace klineage::lineage
