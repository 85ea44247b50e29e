// SPDX-License-Identifier: GPL-3.0-or-later
//
// Materialization: a policy asks, the author answers with whole candidates, the gate judges each against the state that it was made from
// and against the reference, and the verdict goes back. The policy knows nothing of files, money or the gate; this file knows nothing
// of strategy. What is asked depends only on the run's settings, on what was kept from the workspace when it began, on replies and on
// trials, so a run that is gone on with asks the same again.
#include "core/diff/changes.h"
#include "core/policy/policy.h"
#include "core/policy/standings.h"
#include "core/run/activerun.h"
#include "core/run/lift/difftext.h"
#include "core/run/materialize/cards.h"
#include "core/run/subject.h"
#include "core/run/summary.h"
#include "core/talk/figures.h"
#include "core/talk/reply.h"
#include "core/talk/trialtext.h"

#include <algorithm>
#include <map>
#include <set>

namespace klineage::run {

namespace {

using policy::Ask;
using policy::Outcome;
using policy::Tried;

constexpr int mostAudits = 3;
constexpr int changeContext = 3; ///< lines around a change that is shown
constexpr std::size_t mostChangeBytes = 6000;
constexpr double nearTie = 0.02; ///< of the best's score: some three times what chained pairs are off by
constexpr std::size_t mostPairs = 2;

/// A question's answer as it stands in the record: the policy is told of it after the step is written.
struct Answered {
    Outcome outcome;
    StepRecord step;
};

class Materialization
{
public:
    explicit Materialization(Context &context)
        : m_context(context)
        , m_run(context)
    {}

    [[nodiscard]] Result<Ending> run();

private:
    [[nodiscard]] const Settings &settings() const { return m_run.settings(); }
    [[nodiscard]] Status prepare();
    [[nodiscard]] Status gateRoot();
    [[nodiscard]] Result<std::optional<Ending>> oneStep();
    [[nodiscard]] Result<llm::Exchange> askAuthor(const Ask &ask);
    [[nodiscard]] Result<Answered> answerPlan(const Ask &ask, const std::string &reply);
    [[nodiscard]] Result<Answered> answerCandidate(const Ask &ask, const std::string &reply);
    [[nodiscard]] Result<Answered> gateCandidate(const Ask &ask, const std::string &text);
    [[nodiscard]] Status audit();
    [[nodiscard]] Status rank();
    [[nodiscard]] Status pairWithBest(const policy::Standings::Entry &contender);
    [[nodiscard]] Status write(StepRecord step, const gate::Trial *trial);
    [[nodiscard]] std::string surfaceProblem(const std::string &text) const;
    [[nodiscard]] std::string limitProblem(const std::string &base, const std::string &text) const;

    Context &m_context;
    ActiveRun m_run;
    std::unique_ptr<policy::Policy> m_policy;
    Tried m_root;
    Reference m_reference;
    std::vector<Tried> m_valid; ///< the root first
    std::map<std::string, std::string>
        m_seen;                    ///< normalized code -> sha-256 of the candidate that had it first
    policy::Standings m_standings; ///< by paired gains
    bool m_paired = false;         ///< the best follows them
    double m_best = 0;
    double m_totalDollars = 0;
    int m_questions = 0;
    int m_maxOutputTokens = 0; ///< of the last question
};

Answered unusable(std::string problem)
{
    Answered answered;
    answered.outcome.kind = Outcome::Kind::NoCandidate;
    answered.outcome.problem = problem;
    answered.step.outcome = "failed";
    answered.step.reason = std::move(problem);
    return answered;
}

Answered done(const std::string &reason)
{
    Answered answered;
    answered.outcome.kind = Outcome::Kind::Done;
    answered.outcome.problem = reason;
    answered.step.outcome = "done";
    answered.step.reason = reason.empty() ? "The author says that nothing is left to do." : sentence(reason);
    return answered;
}

Status Materialization::prepare()
{
    std::vector<std::string> options{"cards", "hypotheses",        "held_out", "most_cards",
                                     "audit", "card_text",         "best",     "moves",
                                     "arm",   "most_changed_lines"};
    for (const std::string &name : policy::policyNames()) { // an experiment gives the same options to all
        const std::vector<std::string> own = policy::policyOptions(name);
        options.insert(options.end(), own.begin(), own.end());
    }
    if (Status known = m_run.checkOptions(std::move(options)); !known)
        return known;
    const Result<Subject> subject = keepSubject(m_run, settings().subject);
    if (!subject)
        return tl::unexpected(subject.error());
    policy::Problem problem;
    problem.workload = settings().workload;
    problem.workloadText = subject->workload;
    problem.surface = m_run.surface();
    problem.platform = settings().platform;
    problem.rootName = subject->label;
    problem.seed = settings().seed;
    problem.options = settings().options;
    if (policy::usesCards(settings().policy, settings().options)) {
        const Result<CardChoice> choice = keepCards(m_run, *subject);
        if (!choice)
            return tl::unexpected(choice.error());
        for (const TakenCard &taken : choice->taken)
            problem.cards.push_back(taken.card);
        problem.present = choice->present;
    }
    m_root.text = subject->text;
    m_paired = policy::followsPairs(settings().options);
    Result<std::unique_ptr<policy::Policy>> made = policy::makePolicy(settings().policy, std::move(problem));
    if (!made)
        return tl::unexpected(made.error());
    m_policy = std::move(*made);
    return {};
}

Status Materialization::gateRoot()
{
    Result<gate::Trial> trial = m_run.gate(m_root.text, {}, "gating the root");
    if (!trial)
        return tl::unexpected(trial.error());
    m_reference = referenceOf(*trial);
    m_root.speedup = speedupOf(*trial, m_reference);
    m_root.trial = std::move(*trial);
    StepRecord step;
    step.action = "root";
    step.title = "Root " + settings().subject;
    const bool correct = m_root.trial.verdict.status == gate::VerdictStatus::Correct;
    step.outcome = correct ? "valid" : "failed";
    step.reason =
        correct ? sentence(figuresText(m_root.trial) + "; T_ref is "
                           + (m_reference.name == "root" ? std::string("its own latency") : m_reference.name))
                : verdictLine(m_root.trial);
    if (Status written = write(std::move(step), &m_root.trial); !written)
        return written;
    if (!correct)
        return fail(ErrorCode::InvalidInput, "The root '" + settings().subject
                                                 + "' does not pass the gate: " + verdictLine(m_root.trial));
    m_valid = {m_root};
    m_standings.addRoot(m_root.trial.candidate);
    m_seen[policy::normalizedCode(m_root.text)] = m_root.trial.candidate;
    return m_policy->begin(m_root);
}

/// Appends a step with the trial's figures; the best is the maximum of all valid steps before it and of this one.
Status Materialization::write(StepRecord step, const gate::Trial *trial)
{
    step.totalDollars = m_totalDollars;
    if (trial) {
        ActiveRun::name(*trial, step);
        step.speedup = speedupOf(*trial, m_reference);
    }
    if (step.outcome == "valid")
        m_best = std::max(m_best, step.speedup);
    step.best = m_best;
    return m_run.write(std::move(step));
}

Result<llm::Exchange> Materialization::askAuthor(const Ask &ask)
{
    llm::Request request = ask.request;
    Result<llm::Exchange> exchange =
        m_run.send(request, "asking (question " + std::to_string(m_questions + 1) + "): " + ask.title);
    if (!exchange)
        return exchange;
    m_maxOutputTokens = request.maxOutputTokens;
    ++m_questions;
    m_totalDollars += exchange->dollars;
    return exchange;
}

/// A candidate for another surface would be gated on another device. What does not parse is the gate's to judge.
std::string Materialization::surfaceProblem(const std::string &text) const
{
    const Result<kernel::Candidate> candidate = kernel::parseCandidate(text, "candidate");
    if (!candidate || candidate->surface == m_run.surface())
        return {};
    return std::string("The candidate is written for the surface '") + kernel::toString(candidate->surface)
           + "'; '" + kernel::toString(m_run.surface()) + "' was expected.";
}

/// Of a limited author: what was changed beyond the option "most_changed_lines".
std::string Materialization::limitProblem(const std::string &base, const std::string &text) const
{
    const int most = policy::mostChangedLines(settings().options);
    if (most == 0)
        return {};
    const auto blocks = diff::changedBlocks(base, text, false, m_context.stop);
    std::int64_t changed = 0;
    for (const diff::Block &block : blocks.value_or(std::vector<diff::Block>()))
        changed += std::max(block.left.count, block.right.count);
    if (changed <= most)
        return {};
    return "The candidate changes " + std::to_string(changed)
           + " lines of the file that it was to be made from; at most " + std::to_string(most)
           + " are allowed. It was not gated.";
}

Result<Answered> Materialization::answerPlan(const Ask &, const std::string &reply)
{
    const Result<policy::Reading> reading = policy::readReply(reply);
    if (!reading)
        return unusable(reading.error().message);
    if (reading->kind == policy::Reading::Kind::Done)
        return done(reading->text);
    const Result<std::string> plan = m_policy->readPlan(reading->text);
    if (!plan)
        return unusable(plan.error().message);
    Answered answered;
    answered.outcome.kind = Outcome::Kind::Planned;
    answered.step.outcome = "planned";
    answered.step.reason = *plan;
    return answered;
}

Result<Answered> Materialization::answerCandidate(const Ask &ask, const std::string &reply)
{
    const Result<policy::Reading> reading = policy::readCandidateReply(reply);
    if (!reading)
        return unusable(reading.error().message);
    if (reading->kind == policy::Reading::Kind::Done)
        return done(reading->text);
    if (const std::string problem = surfaceProblem(reading->text); !problem.empty())
        return unusable(problem);
    if (const std::string problem = limitProblem(ask.baseText, reading->text); !problem.empty())
        return unusable(problem);
    if (const std::string problem = m_policy->problemOf(reading->text); !problem.empty())
        return unusable(problem);
    const std::string code = policy::normalizedCode(reading->text);
    if (const auto before = m_seen.find(code); before != m_seen.end()) {
        const bool isRoot = before->second == m_root.trial.candidate;
        Answered answered =
            unusable(isRoot ? "The candidate is the root file again, comments and blanks aside."
                            : "The candidate is one that was gated before, comments and blanks aside.");
        answered.outcome.kind = Outcome::Kind::Wrapper;
        answered.step.outcome = "wrapper";
        answered.step.candidate = before->second;
        return answered;
    }
    Result<Answered> answered = gateCandidate(ask, reading->text);
    if (answered)
        m_seen[code] = answered->outcome.tried.trial.candidate;
    return answered;
}

Result<Answered> Materialization::gateCandidate(const Ask &ask, const std::string &text)
{
    Result<gate::Trial> trial =
        m_run.gate(text, ask.baseText, "gating the candidate of question " + std::to_string(m_questions));
    if (!trial)
        return tl::unexpected(trial.error());
    Answered answered;
    Tried &tried = answered.outcome.tried;
    tried.text = text;
    answered.outcome.changes = diffText(ask.baseText, text, changeContext, mostChangeBytes);
    tried.speedup = speedupOf(*trial, m_reference);
    tried.trial = std::move(*trial);
    answered.outcome.kind = Outcome::Kind::Gated;
    const gate::VerdictStatus status = tried.trial.verdict.status;
    if (status == gate::VerdictStatus::Correct) {
        answered.step.outcome = "valid";
        answered.step.reason = sentence(figuresText(tried.trial));
        const bool gains =
            m_standings.add(tried.trial.candidate, tried.trial.parent, tried.trial.comparison("parent"));
        answered.outcome.improved = m_paired ? gains : tried.speedup > m_best;
        return answered;
    }
    answered.step.outcome = "failed";
    answered.step.reason = verdictLine(tried.trial);
    if (status == gate::VerdictStatus::Suspect) { // it won without doing the work
        answered.step.outcome = "wrapper";
        answered.outcome.kind = Outcome::Kind::Wrapper;
        answered.outcome.problem = policy::trialText(tried.trial);
    }
    return answered;
}

/// Nothing: the run goes on.
Result<std::optional<Ending>> Materialization::oneStep()
{
    if (m_context.stop.stop_requested())
        return std::optional(Ending{"stopped", "The run was stopped; it can be gone on with."});
    if (settings().maxSteps > 0 && m_questions >= settings().maxSteps)
        return std::optional(Ending{"step_limit", "The run has asked its "
                                                      + std::to_string(settings().maxSteps) + " questions."});
    Result<policy::Move> move = m_policy->next();
    if (!move)
        return tl::unexpected(move.error());
    if (const auto *end = std::get_if<policy::End>(&*move))
        return std::optional(Ending{"complete", end->reason});
    const Ask &ask = std::get<Ask>(*move);
    const Result<llm::Exchange> exchange = askAuthor(ask);
    if (!exchange)
        return tl::unexpected(exchange.error());

    const std::string problem = replyProblem(exchange->reply, m_maxOutputTokens);
    Result<Answered> answered = !problem.empty() ? unusable(problem)
                                : ask.wantsPlan  ? answerPlan(ask, exchange->reply.text)
                                                 : answerCandidate(ask, exchange->reply.text);
    if (!answered)
        return tl::unexpected(answered.error());
    StepRecord &step = answered->step;
    step.action = ask.action;
    step.title = ask.title;
    step.cards = ask.cards;
    step.exchanges = {exchange->number};
    step.dollars = exchange->dollars;
    Tried &tried = answered->outcome.tried;
    if (Status written = write(step, tried.text.empty() ? nullptr : &tried.trial); !written)
        return tl::unexpected(written.error());
    if (step.outcome == "valid")
        m_valid.push_back(tried);
    answered->outcome.reply = policy::withoutThoughts(exchange->reply.text);
    m_policy->observe(answered->outcome);
    return std::optional<Ending>();
}

/// Two candidates that were never timed beside each other and lie as near as noise are, are timed beside each other.
Status Materialization::pairWithBest(const policy::Standings::Entry &contender)
{
    const auto textOf = [&](const std::string &candidate) {
        return std::find_if(m_valid.begin(), m_valid.end(),
                            [&](const Tried &tried) { return tried.trial.candidate == candidate; })
            ->text;
    };
    const std::string best = m_standings.best().candidate;
    const Result<gate::Trial> trial =
        m_run.gate(textOf(contender.candidate), textOf(best), "pairing a near tie with the best");
    if (!trial)
        return tl::unexpected(trial.error());
    const bool correct = trial->verdict.status == gate::VerdictStatus::Correct;
    const gate::Comparison *comparison = trial->comparison("parent");
    if (correct && comparison)
        m_standings.settle(contender.candidate, best, *comparison);
    StepRecord step;
    step.action = "pair";
    step.title = "Pair a near tie with the best";
    step.outcome = correct ? "paired" : "failed";
    step.reason = correct ? sentence(figuresText(*trial)) : verdictLine(*trial);
    return write(std::move(step), &*trial);
}

/// Best first.
Status Materialization::rank()
{
    if (!m_paired) {
        std::stable_sort(m_valid.begin(), m_valid.end(),
                         [](const Tried &a, const Tried &b) { return a.speedup > b.speedup; });
        return {};
    }
    for (const policy::Standings::Entry &contender : m_standings.contenders(nearTie, mostPairs)) {
        if (Status paired = pairWithBest(contender); !paired)
            return paired;
    }
    const std::vector<policy::Standings::Entry> ranking = m_standings.ranking();
    const auto placeOf = [&](const Tried &tried) {
        return std::find_if(ranking.begin(), ranking.end(), [&](const policy::Standings::Entry &entry) {
            return entry.candidate == tried.trial.candidate;
        });
    };
    std::stable_sort(m_valid.begin(), m_valid.end(),
                     [&](const Tried &a, const Tried &b) { return placeOf(a) < placeOf(b); });
    return {};
}

/// The best candidate was picked because it measured best, so its own figure flatters it: it is gated once more, on fresh inputs and
/// against the root, and that is the run's result. One that does not pass again gives way to the next.
Status Materialization::audit()
{
    const auto wanted = settings().options.find("audit");
    if (wanted != settings().options.end() && wanted->second == "no")
        return {};
    if (Status ranked = rank(); !ranked)
        return ranked;
    for (std::size_t i = 0; i < m_valid.size() && i < mostAudits; ++i) {
        const Tried &tried = m_valid[i];
        if (tried.trial.candidate == m_root.trial.candidate)
            return {};
        const Result<gate::Trial> trial =
            m_run.gate(tried.text, m_root.text, "gating the best candidate again");
        if (!trial)
            return tl::unexpected(trial.error());
        const bool correct = trial->verdict.status == gate::VerdictStatus::Correct;
        StepRecord step;
        step.action = "audit";
        step.title = "Gate the best again, against the root";
        step.outcome = correct ? "audited" : "failed";
        step.reason = correct ? sentence(figuresText(*trial)) : verdictLine(*trial);
        if (Status written = write(std::move(step), &*trial); !written)
            return written;
        if (correct)
            return {};
    }
    return {};
}

Result<Ending> Materialization::run()
{
    if (Status prepared = prepare(); !prepared)
        return tl::unexpected(prepared.error());
    Status rooted = gateRoot();
    Ending ending;
    std::optional<Error> problem;
    if (!rooted)
        problem = rooted.error();
    while (!problem) {
        const Result<std::optional<Ending>> step = oneStep();
        if (!step)
            problem = step.error();
        else if (*step) {
            ending = **step;
            break;
        }
    }
    if (problem) {
        const Result<Ending> end = orderly(tl::unexpected(*problem));
        if (!end)
            return end;
        ending = *end;
    }
    if (ending.code == "stopped")
        return ending;
    if (Status audited = audit(); !audited)
        return orderly(tl::unexpected(audited.error()));
    return ending;
}

} // namespace

Result<Ending> materialize(Context &context)
{
    return Materialization(context).run();
}

} // namespace klineage::run
