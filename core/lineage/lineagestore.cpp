// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/files/formatnumber.h"
#include "core/files/jsonlines.h"
#include "core/files/keptkeys.h"
#include "core/files/sha256.h"
#include "core/kernel/candidatetext.h"
#include "core/lineage/lineage.h"
#include "core/lineage/rewrite.h"
#include "core/trial/listing.h"
#include "core/trial/trialfile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace klineage::lineage {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t maxTomlBytes = std::size_t{1} << 20;

void readTrials(Lineage &lineage, const fs::path &path)
{
    Result<gate::TrialFile> file = gate::readTrialFile(path);
    if (!file)
        return lineage.notices.push_back(file.error().message);
    lineage.trials = std::move(file->trials);
    std::move(file->notices.begin(), file->notices.end(), std::back_inserter(lineage.notices));
}

/// Compares a named file with the trial that stands for it. Returns the file's sha-256, or nothing when it cannot be read.
std::string checkNamed(Lineage &lineage, const std::string &who, const std::string &file,
                       const std::string &trialId)
{
    const Result<std::string> text = kernel::readCandidateText(lineage.directory / file);
    std::string sha;
    if (text)
        sha = files::sha256Hex(*text);
    else
        lineage.notices.push_back(who + ": " + text.error().message);
    if (trialId.empty())
        return sha;
    const gate::Trial *trial = lineage.findTrial(trialId);
    if (!trial) {
        lineage.notices.push_back(who + ": its trial " + trialId + " is not in trials.jsonl.");
        return sha;
    }
    if (trial->workload != lineage.workload)
        lineage.notices.push_back(who + ": its trial " + trialId + " belongs to the workload '"
                                  + trial->workload + "', not to '" + lineage.workload + "'.");
    if (trial->environment.platform != lineage.platform)
        lineage.notices.push_back(who + ": its trial " + trialId + " was recorded on the platform '"
                                  + trial->environment.platform + "', not on '" + lineage.platform + "'.");
    if (!sha.empty() && trial->candidate != sha)
        lineage.notices.push_back(who + ": " + file + " is not the file that its trial " + trialId
                                  + " measured; gate it again.");
    return sha;
}

void deriveBranches(Lineage &lineage, const std::map<std::string, std::string> &stateOfSha,
                    const std::set<std::string> &shas, const std::set<std::string> &namedTrials)
{
    for (const gate::Trial &trial : lineage.trials) {
        const auto parent = stateOfSha.find(trial.parent);
        if (parent == stateOfSha.end() || namedTrials.count(trial.id) > 0 || shas.count(trial.candidate) > 0)
            continue;
        const auto older =
            std::find_if(lineage.branches.begin(), lineage.branches.end(), [&](const Branch &branch) {
                const gate::Trial *known = lineage.findTrial(branch.trial);
                return branch.parent == parent->second && known->candidate == trial.candidate
                       && known->environment.device == trial.environment.device;
            });
        if (older != lineage.branches.end())
            lineage.branches.erase(older); // gated again on that device: one branch, its newest trial
        const fs::path stored = branchFileName(trial.candidate, trial.surface);
        lineage.branches.push_back({trial.id, parent->second, stored.string()});
    }
}

void checkFolder(Lineage &lineage)
{
    const fs::path folder = lineage.directory.lexically_normal();
    const fs::path name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
    if (name.empty() || name == lineage.folder())
        return;
    if (lineage.name.empty())
        lineage.notices.push_back("lineage.toml names the platform '" + lineage.platform
                                  + "', but its folder is '" + name.string() + "'.");
    else
        lineage.notices.push_back("lineage.toml names the platform '" + lineage.platform + "' and itself '"
                                  + lineage.name + "', but its folder is '" + name.string() + "'; expected '"
                                  + lineage.folder() + "'.");
}

} // namespace

std::string branchFileName(const std::string &candidateSha, kernel::Surface surface)
{
    return "branches/" + candidateSha.substr(0, 12) + surface.language().extension;
}

Result<Lineage> readLineage(const fs::path &directory)
{
    const fs::path path = directory / "lineage.toml";
    const Result<std::string> text = files::readFile(path, maxTomlBytes);
    if (!text)
        return tl::unexpected(text.error());
    const files::PassedOver passedOver;
    Result<Lineage> lineage = parseLineage(*text, path.string());
    if (!lineage)
        return lineage;
    lineage->directory = directory;
    if (std::string sentence = passedOver.sentence("lineage.toml"); !sentence.empty())
        lineage->notices.push_back(std::move(sentence));
    checkFolder(*lineage);
    readTrials(*lineage, directory / "trials.jsonl");
    lineage->comments = readComments(directory, lineage->notices);

    std::map<std::string, std::string> stateOfSha;
    std::set<std::string> shas;
    std::set<std::string> namedTrials;
    for (const State &state : lineage->states) {
        const std::string sha = checkNamed(*lineage, "State " + state.id, state.file, state.trial);
        if (!sha.empty())
            stateOfSha.emplace(sha, state.id);
        shas.insert(sha);
        namedTrials.insert(state.trial);
    }
    for (const Attempt &attempt : lineage->attempts) {
        shas.insert(checkNamed(*lineage, "Attempt " + attempt.id, attempt.file, attempt.trial));
        namedTrials.insert(attempt.trial);
    }
    for (const Transition &transition : lineage->transitions) {
        if (transition.rederived.empty())
            continue;
        const std::string who = "The re-derived " + transition.to;
        shas.insert(checkNamed(*lineage, who, transition.rederived, transition.rederivedTrial));
        checkNamed(*lineage, who, transition.rederived, transition.rederivedMatch);
    }
    deriveBranches(*lineage, stateOfSha, shas, namedTrials);
    return lineage;
}

Status rewriteLineage(const fs::path &directory, const Lineage &lineage)
{
    const fs::path path = directory / "lineage.toml";
    const Result<std::string> before = files::readFile(path, maxTomlBytes);
    if (!before)
        return tl::unexpected(before.error());
    const files::PassedOver passedOver;
    if (const Result<Lineage> old = parseLineage(*before, path.string()); !old)
        return tl::unexpected(old.error());
    const Result<std::string> text = files::withKeptKeys(*before, writeLineage(lineage), passedOver);
    if (!text)
        return fail(text.error().code, path.string() + ": " + text.error().message);
    return files::writeFileAtomic(path, *text);
}

Status appendTrial(const fs::path &lineageDirectory, const gate::Trial &trial)
{
    const fs::path path = lineageDirectory / "trials.jsonl";
    const std::string line = gate::writeTrial(trial);
    // A line is never changed, so what could not be read again (a NaN, a log over the limit) must not get in.
    if (const Result<gate::Trial> readable = gate::parseTrial(line, "the new trial"); !readable)
        return fail(ErrorCode::InvalidInput, "Cannot record trial " + trial.id + " in '" + path.string()
                                                 + "': " + readable.error().message);
    if (!trial.listingText.empty()) {
        if (Status stored = gate::storeListing(lineageDirectory, trial.listingText); !stored)
            return stored;
    }
    return files::appendLine(path, line);
}

Result<std::string> storeBranch(const fs::path &lineageDirectory, std::string_view candidateText,
                                kernel::Surface surface)
{
    const std::string sha = files::sha256Hex(candidateText);
    const std::string name = branchFileName(sha, surface);
    const fs::path path = lineageDirectory / name;
    std::error_code problem;
    fs::create_directories(path.parent_path(), problem);
    if (problem)
        return fail(ErrorCode::Io,
                    "Cannot create '" + path.parent_path().string() + "': " + problem.message() + '.');
    if (const Result<std::string> stored = kernel::readCandidateText(path);
        stored && *stored == candidateText)
        return name;
    if (Status written = files::writeFileAtomic(path, candidateText); !written)
        return tl::unexpected(written.error());
    return name;
}

} // namespace klineage::lineage
