// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/runfiles.h"

#include "core/base/filelock.h"
#include "core/files/atomicfile.h"
#include "core/files/filehandle.h"
#include "core/files/formatnumber.h"
#include "core/files/sha256.h"
#include "core/files/tomlwriter.h"
#include "core/files/utctime.h"
#include "core/trial/listing.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

/// A reader looks at the lock for an instant, so a busy one is asked for again for a while.
Result<FileDescriptor> takeLock(const fs::path &directory)
{
    const fs::path path = directory / lockFile;
    FileDescriptor handle = files::openFile(path, O_RDWR | O_CREAT);
    if (!handle)
        return files::systemError("lock the run with", path, errno);
    const LockOutcome outcome = lockDescriptor(
        handle, LockKind::Exclusive, {std::chrono::milliseconds(500), std::chrono::milliseconds(10)});
    if (outcome == LockOutcome::Refused)
        return files::systemError("lock the run with", path, errno);
    if (outcome != LockOutcome::Had)
        return fail(ErrorCode::Conflict, "Cannot go on with the run in '" + directory.string()
                                             + "': another program is running it; stop that one first.");
    return handle;
}

std::string shaOf(const std::string &text)
{
    return text.empty() ? std::string() : files::sha256Hex(text);
}

std::string shortSha(const std::string &sha)
{
    return sha.empty() ? "none" : sha.substr(0, 12);
}

/// Why a recorded trial is not an answer to the request; empty when it is.
std::string difference(const gate::Trial &recorded, const gate::GateRequest &request,
                       const std::string &candidate, const std::string &parent)
{
    if (recorded.candidate != candidate)
        return "it is of the candidate " + shortSha(recorded.candidate) + ", but now " + shortSha(candidate)
               + " is to be gated";
    if (recorded.parent != parent)
        return "it was compared with the parent " + shortSha(recorded.parent) + ", which is now "
               + shortSha(parent);
    const std::string workload = request.workloadDirectory.filename().string();
    if (recorded.workload != workload)
        return "it is of the workload '" + recorded.workload + "', not of '" + workload + "'";
    for (const auto &[name, value] : request.tunables) {
        const auto used = recorded.tunables.find(name);
        if (used == recorded.tunables.end() || used->second != value)
            return "its tunable '" + name + "' had another value";
    }
    return {};
}

} // namespace

struct Journal::Private {
    Settings settings;
    fs::path directory;
    FileDescriptor lock;
    std::vector<StepRecord> recordedSteps;
    std::vector<gate::Trial> recordedTrials;
    std::size_t trialsAnswered = 0;
    std::vector<StepRecord> steps;

    [[nodiscard]] kernel::Surface surface() const
    {
        return kernel::surfaceFromString(settings.surface).value_or(kernel::Surface());
    }

    /// What is there already is left alone: the name says the contents.
    [[nodiscard]] Status storeCandidate(const std::string &sha, const std::string &text) const
    {
        const fs::path file = directory / candidateFileName(sha, surface());
        if (const Result<std::string> there = files::readFile(file, text.size()); there && *there == text)
            return {};
        std::error_code problem;
        fs::create_directories(file.parent_path(), problem);
        if (problem)
            return files::systemError("create", file.parent_path(), problem.value());
        return files::writeFileAtomic(file, text);
    }
};

Journal::Journal(std::unique_ptr<Private> d)
    : m_d(std::move(d))
{}
Journal::Journal(Journal &&) noexcept = default;
Journal &Journal::operator=(Journal &&) noexcept = default;
Journal::~Journal() = default;

// The folder appears under its name at once, whole and locked: a kill before leaves only a hidden folder that nobody reads.
Result<Journal> Journal::create(const fs::path &runsDirectory, const Settings &settings)
{
    if (!isRunId(settings.id))
        return klineage::fail(ErrorCode::InvalidInput,
                              "'" + settings.id + "' is no name for a run; use 1 to 64 of a-z, 0-9 and '-'.");
    const fs::path directory = runsDirectory / settings.id;
    std::error_code problem;
    if (fs::exists(directory, problem))
        return klineage::fail(ErrorCode::Conflict, "Cannot create the run '" + settings.id + "': '"
                                                       + directory.string() + "' exists already.");
    const fs::path hidden = runsDirectory / fmt::format(".{}.{}", settings.id, ::getpid());
    fs::remove_all(hidden, problem);
    fs::create_directories(hidden, problem);
    if (problem)
        return files::systemError("create", hidden, problem.value());

    auto d = std::make_unique<Private>();
    d->settings = settings;
    if (d->settings.created.empty())
        d->settings.created = files::nowUtc();
    d->directory = directory;
    Result<FileDescriptor> lock = takeLock(hidden);
    if (!lock)
        return tl::unexpected(lock.error());
    d->lock = std::move(*lock);
    if (Status written =
            files::writeFileAtomic(hidden / settingsFile, files::withFormat(writeSettings(d->settings)));
        !written)
        return tl::unexpected(written.error());
    fs::rename(hidden, directory, problem);
    if (problem) {
        std::error_code ignored;
        fs::remove_all(hidden, ignored);
        if (fs::exists(directory, ignored)) // another process was faster
            return klineage::fail(ErrorCode::Conflict, "Cannot create the run '" + settings.id + "': '"
                                                           + directory.string() + "' exists already.");
        return files::systemError("create", directory, problem.value());
    }
    if (Status synced = files::syncFolder(runsDirectory); !synced)
        return tl::unexpected(synced.error());
    return Journal(std::move(d));
}

Result<Journal> Journal::open(const fs::path &directory)
{
    Result<Settings> settings = readSettings(directory);
    if (!settings)
        return tl::unexpected(settings.error());
    Result<FileDescriptor> lock = takeLock(directory);
    if (!lock)
        return tl::unexpected(lock.error());
    Result<std::vector<StepRecord>> steps = readSteps(directory, nullptr);
    if (!steps)
        return tl::unexpected(steps.error());
    Result<std::vector<gate::Trial>> trials = readTrials(directory, nullptr);
    if (!trials)
        return tl::unexpected(trials.error());
    auto d = std::make_unique<Private>();
    d->settings = std::move(*settings);
    d->directory = directory;
    d->lock = std::move(*lock);
    d->recordedSteps = std::move(*steps);
    d->recordedTrials = std::move(*trials);
    return Journal(std::move(d));
}

const Settings &Journal::settings() const
{
    return m_d->settings;
}

const fs::path &Journal::directory() const
{
    return m_d->directory;
}

const std::vector<StepRecord> &Journal::steps() const
{
    return m_d->steps;
}

bool Journal::isReplaying() const
{
    return m_d->trialsAnswered < m_d->recordedTrials.size() || m_d->steps.size() < m_d->recordedSteps.size();
}

Result<gate::Trial> Journal::gate(const gate::GateRequest &request, const GateFunction &gate,
                                  std::stop_token stop, const gate::ProgressCallback &progress)
{
    if (request.candidateText.empty())
        return klineage::fail(ErrorCode::InvalidInput,
                              "Cannot gate for the run '" + m_d->settings.id + "': the candidate is empty.");
    const std::string candidate = shaOf(request.candidateText);
    const std::string parent = shaOf(request.parentText);
    for (const auto &[sha, text] :
         {std::pair(candidate, &request.candidateText), std::pair(parent, &request.parentText)}) {
        if (sha.empty())
            continue;
        if (Status stored = m_d->storeCandidate(sha, *text); !stored)
            return tl::unexpected(stored.error());
    }

    if (m_d->trialsAnswered < m_d->recordedTrials.size()) {
        const gate::Trial &recorded = m_d->recordedTrials[m_d->trialsAnswered];
        if (const std::string what = difference(recorded, request, candidate, parent); !what.empty())
            return klineage::fail(ErrorCode::Conflict,
                                  fmt::format("Trial {} of the run '{}' does not fit: {}.",
                                              m_d->trialsAnswered + 1, m_d->settings.id, what),
                                  "The run's settings, replies or program changed since it was recorded.");
        ++m_d->trialsAnswered;
        return recorded;
    }

    Result<gate::Trial> trial = gate(request, stop, progress);
    if (!trial)
        return trial;
    if (trial->candidate != candidate)
        return klineage::fail(ErrorCode::Protocol,
                              "The gate answered with a trial of another candidate than it was given.");
    trial->parent = parent;
    trial->file = candidateFileName(candidate, m_d->surface());
    if (!trial->listingText.empty()) {
        if (Status stored = gate::storeListing(m_d->directory, std::exchange(trial->listingText, {}));
            !stored)
            return tl::unexpected(stored.error());
    }
    if (Status written = files::appendLine(m_d->directory / trialsFile, gate::writeTrial(*trial)); !written)
        return tl::unexpected(written.error());
    m_d->recordedTrials.push_back(*trial);
    ++m_d->trialsAnswered;
    return trial;
}

Result<StepRecord> Journal::step(StepRecord step)
{
    for (const double figure : {step.dollars, step.totalDollars, step.speedup, step.best}) {
        if (!std::isfinite(figure) || figure < 0)
            return klineage::fail(ErrorCode::InvalidInput,
                                  "A step's dollars and speedups must be finite and not negative.");
    }
    const std::size_t index = m_d->steps.size();
    step.number = static_cast<int>(index) + 1;
    if (index < m_d->recordedSteps.size()) {
        const StepRecord &recorded = m_d->recordedSteps[index];
        step.time = recorded.time;
        const std::string now = writeStep(step);
        if (now != writeStep(recorded))
            return klineage::fail(ErrorCode::Conflict,
                                  fmt::format("Step {} of the run '{}' is not the recorded one.", step.number,
                                              m_d->settings.id),
                                  "Recorded: " + writeStep(recorded) + "\nNow:      " + now);
        m_d->steps.push_back(recorded);
        return recorded;
    }
    if (index >= maxSteps)
        return klineage::fail(ErrorCode::InvalidInput,
                              "A run has at most " + std::to_string(maxSteps) + " steps.");
    step.time = files::nowUtc();
    const std::string line = writeStep(step);
    // As it reads back, so that a run and its replay see the same (bytes that are no UTF-8 have been replaced); and what would not
    // read back is not written.
    Result<StepRecord> written = parseStep(line, stepsFile);
    if (!written)
        return written;
    if (Status appended = files::appendLine(m_d->directory / stepsFile, line); !appended)
        return tl::unexpected(appended.error());
    m_d->recordedSteps.push_back(*written);
    m_d->steps.push_back(*written);
    return written;
}

Result<std::string> Journal::keep(const std::string &fileName,
                                  const std::function<Result<std::string>()> &make)
{
    const fs::path file = m_d->directory / fileName;
    Result<std::string> there = files::readFile(file, maxKeptBytes);
    if (there || there.error().code != ErrorCode::NotFound)
        return there;
    Result<std::string> made = make();
    if (!made)
        return made;
    if (made->size() > maxKeptBytes)
        return klineage::fail(
            ErrorCode::InvalidInput,
            fmt::format("Cannot keep '{}' in the run: it is larger than {} bytes.", fileName, maxKeptBytes));
    if (Status written = files::writeFileAtomic(file, *made); !written)
        return tl::unexpected(written.error());
    return made;
}

Status Journal::finish(const Ending &ending)
{
    if (ending.isOver() && isReplaying())
        return klineage::fail(ErrorCode::Conflict,
                              "The run '" + m_d->settings.id + "' ends here (" + ending.text()
                                  + "), but its record goes on with "
                                  + (m_d->steps.size() < m_d->recordedSteps.size()
                                         ? "step " + std::to_string(m_d->steps.size() + 1)
                                         : "trial " + std::to_string(m_d->trialsAnswered + 1))
                                  + '.');
    if (const Result<Ending> there = readEnding(m_d->directory)) {
        // Who looks at a finished run again and stops half-way has not undone it.
        if (*there == ending || (there->isOver() && !ending.isOver()))
            return {};
    }
    return writeEnding(m_d->directory, ending);
}

Status writeEnding(const fs::path &directory, const Ending &ending)
{
    files::TomlWriter out;
    out.string("ending", ending.code);
    out.optionalString("reason", ending.reason);
    out.string("time", files::nowUtc());
    return files::writeFileAtomic(directory / endingFile, out.text());
}

} // namespace klineage::run
