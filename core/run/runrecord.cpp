// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/runfiles.h"

#include "core/base/filelock.h"
#include "core/files/filehandle.h"
#include "core/files/formatnumber.h"

#include <algorithm>

#include <fcntl.h>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

/// Whether a live process holds the folder's lock. A lock that cannot be looked at is nobody's.
bool isHeld(const fs::path &directory)
{
    const FileDescriptor handle = files::openFile(directory / lockFile, O_RDONLY);
    return handle && lockDescriptor(handle, LockKind::Shared) == LockOutcome::Busy;
}

} // namespace

bool Ending::isOver() const
{
    return !code.empty() && code != "stopped" && code != "error";
}

std::string Ending::text() const
{
    return code.empty() || reason.empty() ? code + reason : code + ": " + reason;
}

std::string candidateFileName(const std::string &sha, kernel::Surface surface)
{
    return "candidates/" + sha.substr(0, 12) + surface.language().extension;
}

Result<RunRecord> readRun(const fs::path &directory)
{
    RunRecord run;
    run.directory = directory;
    const files::PassedOver passedOver;
    Result<Settings> settings = readSettings(directory);
    if (!settings)
        return tl::unexpected(settings.error());
    run.settings = std::move(*settings);
    // Before the logs: a run that ends in between then reads as running, and the next look puts it right.
    const bool held = isHeld(directory);
    Result<std::vector<StepRecord>> steps = readSteps(directory, &run.notices);
    if (!steps)
        return tl::unexpected(steps.error());
    Result<std::vector<gate::Trial>> trials = readTrials(directory, &run.notices);
    if (!trials)
        return tl::unexpected(trials.error());
    Result<Ending> ending = readEnding(directory);
    if (!ending)
        return tl::unexpected(ending.error());
    run.steps = std::move(*steps);
    run.trials = std::move(*trials);
    run.ending = std::move(*ending);
    run.state = held ? "running" : run.ending.isOver() ? "finished" : "stopped";
    if (std::string sentence = passedOver.sentence("The run"); !sentence.empty())
        run.notices.push_back(std::move(sentence));
    const std::string folder = fs::weakly_canonical(directory).filename().string();
    if (!folder.empty() && folder != run.settings.id)
        run.notices.push_back("The folder '" + folder + "' holds the run '" + run.settings.id + "'.");
    return run;
}

std::vector<RunRecord> readRuns(const fs::path &runsDirectory, std::vector<Error> *problems)
{
    std::vector<RunRecord> runs;
    std::error_code ended;
    for (fs::directory_iterator entry(runsDirectory, ended), end; !ended && entry != end;
         entry.increment(ended)) {
        std::error_code ignored;
        const std::string name = entry->path().filename().string();
        if (name.starts_with('.') || !entry->is_directory(ignored))
            continue;
        Result<RunRecord> run = readRun(entry->path());
        if (run)
            runs.push_back(std::move(*run));
        else if (problems)
            problems->push_back(run.error());
    }
    std::sort(runs.begin(), runs.end(), [](const RunRecord &a, const RunRecord &b) {
        if (a.settings.created != b.settings.created)
            return a.settings.created > b.settings.created;
        return a.settings.id < b.settings.id;
    });
    return runs;
}

} // namespace klineage::run
