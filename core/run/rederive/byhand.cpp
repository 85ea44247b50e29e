// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/rederive/byhand.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/lineage/record.h"
#include "core/lineage/rederived.h"
#include "core/run/rederive/handstep.h"
#include "core/talk/figures.h"
#include "core/talk/prompt.h"
#include "core/talk/reply.h"

#include <algorithm>
#include <set>
#include <system_error>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;

class Hand
{
public:
    explicit Hand(const ByHand &work)
        : m_work(work)
    {}

    template <typename Each>
    Result<std::vector<HandRow>> forEach(Each &&each)
    {
        if (Status begun = begin(); !begun)
            return tl::unexpected(begun.error());
        std::vector<HandRow> rows;
        for (const lineage::Transition &transition : m_work.lineage.transitions) {
            if (!m_work.only.empty() && transition.to != m_work.only)
                continue;
            if (!transition.rederived.empty()) {
                rows.push_back(rowOf(transition, 0, "recorded"));
                continue;
            }
            Result<HandStep> step = findHandStep(m_work.lineage, m_task, m_work.folder, transition);
            if (!step)
                return tl::unexpected(step.error());
            Result<HandRow> row = each(*step);
            if (!row)
                return tl::unexpected(row.error());
            rows.push_back(std::move(*row));
        }
        return rows;
    }

    Result<HandRow> ask(const HandStep &step);
    Result<HandRow> prepare(const HandStep &step, std::vector<lineage::RecordJob> &jobs);
    Result<HandRow> judge(const HandStep &step, const std::vector<gate::Trial> &given);

private:
    Status begin();
    [[nodiscard]] HandRow rowOf(const lineage::Transition &transition, int number,
                                const std::string &outcome) const;
    [[nodiscard]] HandRow rowOf(const HandStep &step, const std::string &outcome) const
    {
        return rowOf(step.transition, step.current.number, outcome);
    }
    /// A row when there is no reply that has to be looked at.
    [[nodiscard]] std::optional<HandRow> settledRow(const HandStep &step) const;
    [[nodiscard]] Result<HandRow> failedRow(const HandStep &step, const std::string &problem) const;
    [[nodiscard]] std::vector<gate::Trial> trialsOf(const std::string &candidate, const std::string &parent,
                                                    const std::vector<gate::Trial> &given) const;
    [[nodiscard]] lineage::RecordJob jobOf(const HandStep &step, const std::string &candidate,
                                           const std::string &stateId, std::size_t made) const;
    [[nodiscard]] Status record(const std::vector<gate::Trial> &trials, const std::string &text);
    [[nodiscard]] Status log(const HandStep &step, const Judgement &judgement, const std::string &text,
                             const std::vector<gate::Trial> &trials) const;
    [[nodiscard]] Result<fs::path> askAgain(const HandStep &step, const std::string &feedback) const;

    const ByHand &m_work;
    std::string m_task;
    std::vector<HandLogLine> m_log;
    std::set<std::string> m_recorded; ///< ids of trials that this call added
};

Status Hand::begin()
{
    const lineage::Lineage &lineage = m_work.lineage;
    if (!m_work.only.empty() && !lineage.transitionTo(m_work.only))
        return fail(ErrorCode::NotFound, "The lineage " + lineage.key() + " has no transition to '"
                                             + m_work.only
                                             + "'; expected the id of a state after its first.");
    std::error_code problem;
    fs::create_directories(m_work.folder, problem);
    if (problem)
        return fail(ErrorCode::Io,
                    "Cannot create '" + m_work.folder.string() + "': " + problem.message() + '.');
    Result<std::string> task = readTask(lineage);
    if (!task)
        return tl::unexpected(task.error());
    m_task = std::move(*task);
    Result<std::vector<HandLogLine>> log = readHandLog(lineage.directory);
    if (!log)
        return tl::unexpected(log.error());
    m_log = std::move(*log);
    return {};
}

HandRow Hand::rowOf(const lineage::Transition &transition, int number, const std::string &outcome) const
{
    return {m_work.lineage.key(), transition.from, transition.to, number, outcome};
}

std::optional<HandRow> Hand::settledRow(const HandStep &step) const
{
    if (step.reply.empty()) {
        HandRow row = rowOf(step, "waiting");
        row.file = step.current.prompt;
        for (const HandLogLine &line : m_log) {
            if (line.to == step.transition.to)
                row.reason = "Before: " + line.reason;
        }
        return row;
    }
    const std::string sha = files::sha256Hex(step.reply);
    for (const HandLogLine &line : m_log) {
        // What is accepted stands in the lineage, and before the last try a next one would stand here: a kill came between.
        if (line.to != step.transition.to || line.reply != sha || line.outcome == "accepted"
            || step.current.number < step.wanted.repairs)
            continue;
        HandRow row = rowOf(step, line.outcome);
        row.reason = line.reason + " It was judged before; no tries are left.";
        return row;
    }
    return std::nullopt;
}

Result<HandRow> Hand::ask(const HandStep &step)
{
    if (auto row = settledRow(step); row && !step.reply.empty())
        return std::move(*row);
    HandRow row = rowOf(step, step.reply.empty() ? "waiting" : "answered");
    row.file = step.current.prompt;
    const bool isFirst = step.current.number == 0;
    if (isFirst && step.currentPrompt != step.prompt) {
        if (!step.reply.empty()) {
            row.reason =
                "The lineage or its workload has changed since: the prompt that was answered is another "
                "one.";
            return row;
        }
        if (Status written = files::writeFileAtomic(step.current.prompt, step.prompt); !written)
            return tl::unexpected(written.error());
        row.outcome = "asked";
    }
    return row;
}

Result<HandRow> Hand::failedRow(const HandStep &step, const std::string &problem) const
{
    const Result<std::string> refusal = prompt("deoptimize-refused", {{"problem", problem}});
    if (!refusal)
        return tl::unexpected(refusal.error());
    if (Status written = files::writeFileAtomic(step.current.problem, *refusal); !written)
        return tl::unexpected(written.error());
    HandRow row = rowOf(step, "failed");
    row.reason = problem;
    row.file = step.current.problem;
    return row;
}

std::vector<gate::Trial> Hand::trialsOf(const std::string &candidate, const std::string &parent,
                                        const std::vector<gate::Trial> &given) const
{
    std::vector<gate::Trial> found;
    std::set<std::string> ids;
    for (const std::vector<gate::Trial> *trials : {&m_work.lineage.trials, &given}) {
        for (const gate::Trial &trial : *trials) {
            if (trial.candidate == candidate && trial.parent == parent
                && trial.environment.platform == m_work.lineage.platform
                && trial.verdict.status != gate::VerdictStatus::Unavailable && ids.insert(trial.id).second)
                found.push_back(trial);
        }
    }
    return found;
}

lineage::RecordJob Hand::jobOf(const HandStep &step, const std::string &candidate, const std::string &stateId,
                               std::size_t made) const
{
    const lineage::Lineage &lineage = m_work.lineage;
    lineage::RecordJob job;
    job.id = "rederive/" + lineage.key() + '/' + step.transition.to + '/' + candidate.substr(0, 12)
             + "/against-" + stateId;
    if (made > 0) // a batch leaves out the ids that it knows
        job.id += "/again" + std::to_string(made);
    job.workload = lineage.directory.parent_path().parent_path();
    job.candidate = step.current.candidate;
    job.parent = lineage.directory / lineage.findState(stateId)->file;
    return job;
}

Result<HandRow> Hand::prepare(const HandStep &step, std::vector<lineage::RecordJob> &jobs)
{
    if (auto row = settledRow(step))
        return std::move(*row);
    const HandAnswer answer = handAnswer(step, m_work.lineage.surface);
    if (!answer.problem.empty())
        return failedRow(step, answer.problem);
    std::error_code ignored;
    fs::remove(step.current.problem, ignored);
    if (Status written = files::writeFileAtomic(step.current.candidate, answer.text); !written)
        return tl::unexpected(written.error());
    const std::string sha = files::sha256Hex(answer.text);
    const auto against = [&](const std::string &text) { return trialsOf(sha, files::sha256Hex(text), {}); };
    const std::vector<gate::Trial> alone = against(step.wanted.simpler);
    const std::vector<gate::Trial> matches = against(step.wanted.stronger);
    if (alone.empty())
        jobs.push_back(jobOf(step, sha, step.transition.from, 0));
    const bool isTold = std::any_of(matches.begin(), matches.end(), [&](const gate::Trial &trial) {
        return lineage::matchOf(trial, step.wanted.within) != lineage::Match::Unsteady;
    });
    if (!isTold)
        jobs.push_back(jobOf(step, sha, step.transition.to, matches.size()));
    return rowOf(step, "ready");
}

/// One wrong verdict is enough; otherwise the newest.
const gate::Trial *decisive(const std::vector<gate::Trial> &trials)
{
    const auto wrong = std::find_if(trials.begin(), trials.end(), [](const gate::Trial &trial) {
        return trial.verdict.status != gate::VerdictStatus::Correct;
    });
    if (wrong != trials.end())
        return &*wrong;
    return trials.empty() ? nullptr : &trials.back();
}

/// The first that tells, as in a run; otherwise the newest.
const gate::Trial *decisiveMatch(const std::vector<gate::Trial> &trials, double within)
{
    const auto tells = std::find_if(trials.begin(), trials.end(), [within](const gate::Trial &trial) {
        return trial.verdict.status != gate::VerdictStatus::Correct
               || lineage::matchOf(trial, within) != lineage::Match::Unsteady;
    });
    if (tells != trials.end())
        return &*tells;
    return trials.empty() ? nullptr : &trials.back();
}

Result<HandRow> Hand::judge(const HandStep &step, const std::vector<gate::Trial> &given)
{
    if (auto row = settledRow(step))
        return std::move(*row);
    const HandAnswer answer = handAnswer(step, m_work.lineage.surface);
    if (!answer.problem.empty())
        return failedRow(step, answer.problem);
    const std::string sha = files::sha256Hex(answer.text);
    const std::vector<gate::Trial> alone = trialsOf(sha, files::sha256Hex(step.wanted.simpler), given);
    const std::vector<gate::Trial> matches = trialsOf(sha, files::sha256Hex(step.wanted.stronger), given);
    const gate::Trial *trial = decisive(alone);
    const gate::Trial *match = decisiveMatch(matches, step.wanted.within);
    const std::optional<Judgement> wrong = trial ? judgeAlone(*trial) : std::nullopt;
    if (!trial || (!wrong && !match)) {
        HandRow row = rowOf(step, "ungated");
        row.reason =
            "There is no trial of it against " + (trial ? step.transition.to : step.transition.from) + '.';
        return row;
    }
    const Judgement judgement = wrong ? *wrong : judgeMatch(step.wanted, *trial, *match);
    HandRow row = rowOf(step, toString(judgement.outcome));
    row.reason = sentence(judgement.reason);
    const gate::Comparison *comparison = wrong ? nullptr : match->comparison("parent");
    if (comparison && comparison->speedup.value > 0)
        row.share = 1 / comparison->speedup.value;

    std::vector<gate::Trial> all = alone;
    all.insert(all.end(), matches.begin(), matches.end());
    const bool isAccepted = judgement.outcome == Judgement::Outcome::Accepted;
    if (judgement.outcome != Judgement::Outcome::Unsteady) {
        if (Status logged = log(step, judgement, answer.text, all); !logged)
            return tl::unexpected(logged.error());
    }
    if (isAccepted) {
        if (Status kept = lineage::keepRederived(m_work.lineage.directory, step.transition.to, answer.text,
                                                 *trial, *match, all);
            !kept)
            return tl::unexpected(kept.error());
        for (const gate::Trial &made : all)
            m_recorded.insert(made.id);
    }
    if (Status recorded = record(all, answer.text); !recorded)
        return tl::unexpected(recorded.error());
    if (judgement.outcome == Judgement::Outcome::Unsteady) // to be compared again
        return row;
    if (isAccepted || step.current.number >= step.wanted.repairs)
        return row;
    const Result<fs::path> next = askAgain(step, judgement.feedback);
    if (!next)
        return tl::unexpected(next.error());
    row.file = *next;
    return row;
}

Status Hand::record(const std::vector<gate::Trial> &trials, const std::string &text)
{
    for (const gate::Trial &trial : trials) {
        if (!m_recorded.insert(trial.id).second)
            continue;
        if (const auto recorded = lineage::recordTrial(m_work.lineage, trial, text); !recorded)
            return tl::unexpected(recorded.error());
    }
    return {};
}

Status Hand::log(const HandStep &step, const Judgement &judgement, const std::string &text,
                 const std::vector<gate::Trial> &trials) const
{
    HandLogLine line;
    line.from = step.transition.from;
    line.to = step.transition.to;
    line.number = step.current.number;
    line.category = step.wanted.category;
    line.locus = step.wanted.locus;
    line.intent = step.wanted.intent;
    line.prompt = files::sha256Hex(step.currentPrompt);
    line.reply = files::sha256Hex(step.reply);
    line.candidate = files::sha256Hex(text);
    line.outcome = toString(judgement.outcome);
    line.reason = sentence(judgement.reason);
    line.isStrongerText = policy::normalizedCode(text) == policy::normalizedCode(step.wanted.stronger);
    for (const gate::Trial &trial : trials)
        line.trials.push_back(trial.id);
    const bool isThere = std::any_of(m_log.begin(), m_log.end(), [&](const HandLogLine &other) {
        return other.to == line.to && other.reply == line.reply && other.outcome == line.outcome;
    });
    return isThere ? Status() : appendHandLog(m_work.lineage.directory, line);
}

Result<fs::path> Hand::askAgain(const HandStep &step, const std::string &feedback) const
{
    const Result<std::string> repair = repairRequest(step.wanted, feedback);
    if (!repair)
        return tl::unexpected(repair.error());
    const HandTry next = handTry(m_work.folder, m_work.lineage, step.transition.to, step.current.number + 1);
    const std::string text = handRepair(step.currentPrompt, step.reply, *repair);
    if (Status written = files::writeFileAtomic(next.prompt, text); !written)
        return tl::unexpected(written.error());
    return next.prompt;
}

} // namespace

Result<std::vector<HandRow>> askByHand(const ByHand &work)
{
    Hand hand(work);
    return hand.forEach([&](const HandStep &step) { return hand.ask(step); });
}

Result<HandJobs> jobsByHand(const ByHand &work)
{
    Hand hand(work);
    HandJobs found;
    Result<std::vector<HandRow>> rows =
        hand.forEach([&](const HandStep &step) { return hand.prepare(step, found.jobs); });
    if (!rows)
        return tl::unexpected(rows.error());
    found.rows = std::move(*rows);
    return found;
}

Result<std::vector<HandRow>> judgeByHand(const ByHand &work, const std::vector<gate::Trial> &trials)
{
    Hand hand(work);
    return hand.forEach([&](const HandStep &step) { return hand.judge(step, trials); });
}

} // namespace klineage::run
