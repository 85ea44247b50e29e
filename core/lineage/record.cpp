// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/record.h"

#include "core/files/sha256.h"
#include "core/kernel/candidatetext.h"
#include "core/lineage/rewrite.h"

#include <map>

namespace klineage::lineage {

namespace {

std::string shaOfFile(const std::filesystem::path &path)
{
    const Result<std::string> text = kernel::readCandidateText(path);
    return text ? files::sha256Hex(*text) : std::string();
}

/// The lineage's own file with this content, or empty.
std::string fileOf(const Lineage &lineage, const std::string &sha, kernel::Surface surface)
{
    for (const State &state : lineage.states) {
        if (shaOfFile(lineage.directory / state.file) == sha)
            return state.file;
    }
    for (const Attempt &attempt : lineage.attempts) {
        if (shaOfFile(lineage.directory / attempt.file) == sha)
            return attempt.file;
    }
    for (const Transition &transition : lineage.transitions) {
        if (!transition.rederived.empty() && shaOfFile(lineage.directory / transition.rederived) == sha)
            return transition.rederived;
    }
    const std::string branch = branchFileName(sha, surface);
    return shaOfFile(lineage.directory / branch) == sha ? branch : std::string();
}

/// What keeps a trial of the right candidate from standing for a state; the parent's sha-256 is empty for K0.
bool standsFor(const gate::Trial &trial, const std::string &parentSha)
{
    if (trial.verdict.status != gate::VerdictStatus::Correct)
        return false;
    return parentSha.empty() || (trial.parent == parentSha && trial.comparison("parent") != nullptr);
}

} // namespace

Result<RecordOutcome> recordTrial(const Lineage &lineage, gate::Trial trial, std::string_view candidateText)
{
    if (trial.workload != lineage.workload || trial.environment.platform != lineage.platform)
        return fail(ErrorCode::InvalidInput, "Trial " + trial.id + " is of " + trial.workload + '/'
                                                 + trial.environment.platform
                                                 + " and cannot join the lineage " + lineage.key() + '.');
    if (!trial.replayOf.empty())
        return fail(ErrorCode::InvalidInput,
                    "Trial " + trial.id + " replays the inputs of " + trial.replayOf
                        + ", which could be known before: it shows what happened there and is not recorded.");
    if (lineage.findTrial(trial.id))
        return RecordOutcome::Duplicate;
    if (!candidateText.empty() && files::sha256Hex(candidateText) != trial.candidate)
        return fail(ErrorCode::InvalidInput,
                    "Trial " + trial.id
                        + " did not measure the candidate that came with it: their sha-256 differ.");
    trial.file = fileOf(lineage, trial.candidate, trial.surface);
    if (trial.file.empty()) {
        if (candidateText.empty())
            return RecordOutcome::UnknownCandidate;
        Result<std::string> stored = storeBranch(lineage.directory, candidateText, trial.surface);
        if (!stored)
            return tl::unexpected(stored.error());
        trial.file = std::move(*stored);
    }
    if (Status appended = appendTrial(lineage.directory, trial); !appended)
        return tl::unexpected(appended.error());
    return RecordOutcome::Added;
}

Result<std::vector<std::string>> assignTrials(const std::filesystem::path &lineageDirectory,
                                              const std::vector<std::string> &trialIds)
{
    Result<Lineage> lineage = readLineage(lineageDirectory);
    if (!lineage)
        return tl::unexpected(lineage.error());
    std::map<std::string, std::vector<const gate::Trial *>>
        trialsOf; // by the candidate's sha-256, in the order named
    for (const std::string &id : trialIds) {
        if (const gate::Trial *trial = lineage->findTrial(id))
            trialsOf[trial->candidate].push_back(trial);
    }
    std::vector<std::string> changed;
    std::string parentSha;
    for (State &state : lineage->states) {
        const std::string sha = shaOfFile(lineageDirectory / state.file);
        std::string chosen = state.trial;
        for (const gate::Trial *trial : trialsOf[sha]) {
            if (standsFor(*trial, parentSha))
                chosen = trial->id;
        }
        if (chosen != state.trial)
            changed.push_back(state.id);
        state.trial = chosen;
        parentSha = sha;
    }
    for (Attempt &attempt : lineage->attempts) {
        const auto &trials = trialsOf[shaOfFile(lineageDirectory / attempt.file)];
        if (trials.empty() || trials.back()->id == attempt.trial)
            continue;
        attempt.trial = trials.back()->id;
        changed.push_back(attempt.id);
    }
    if (changed.empty())
        return changed;
    if (Status written = rewriteLineage(lineageDirectory, *lineage); !written)
        return tl::unexpected(written.error());
    return changed;
}

} // namespace klineage::lineage
