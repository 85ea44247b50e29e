// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/newlineage.h"

#include "core/base/identifier.h"
#include "core/files/atomicfile.h"
#include "core/files/filehandle.h"
#include "core/files/formatnumber.h"
#include "core/files/sha256.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace klineage::lineage {

namespace {

namespace fs = std::filesystem;

std::string refusal(const NewLineage &lineage, std::string_view text, const gate::Trial &trial)
{
    if (trial.verdict.status != gate::VerdictStatus::Correct)
        return "its trial is " + std::string(gate::toString(trial.verdict.status))
               + ", and a state is correct.";
    if (trial.workload != lineage.workload || trial.environment.platform != lineage.platform)
        return "its trial is of " + trial.workload + '/' + trial.environment.platform + '.';
    if (trial.candidate != files::sha256Hex(text))
        return "its trial measured another text.";
    return {};
}

/// A file that is not there yet, in a folder that nobody else sees: nothing has to be replaced.
Status writeNewFile(const fs::path &path, std::string_view text)
{
    const FileDescriptor handle = files::openFile(path, O_WRONLY | O_CREAT | O_EXCL);
    if (!handle)
        return files::systemError("create", path, errno);
    while (!text.empty()) {
        const ssize_t written = ::write(handle.get(), text.data(), text.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return files::systemError("write", path, errno);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return ::fsync(handle.get()) == 0 ? Status() : files::systemError("flush", path, errno);
}

Status writeFolder(const fs::path &folder, const Lineage &lineage, const std::vector<LineageFile> &texts,
                   const std::optional<gate::Trial> &trial, const std::stop_token &stop)
{
    std::error_code problem;
    fs::create_directories(folder, problem);
    if (problem)
        return fail(ErrorCode::Io, "Cannot create '" + folder.string() + "': " + problem.message() + '.');
    for (const LineageFile &file : texts) {
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, "The lineage was not written: that was stopped.");
        if (Status written = writeNewFile(folder / file.name, file.text); !written)
            return written;
    }
    if (trial) {
        if (Status appended = appendTrial(folder, *trial); !appended)
            return appended;
    }
    return files::writeFileAtomic(folder / "lineage.toml", files::withFormat(writeLineage(lineage)));
}

} // namespace

std::string folderOf(const NewLineage &lineage)
{
    return lineage.name.empty() ? lineage.platform : lineage.platform + '-' + lineage.name;
}

Status checkName(const fs::path &workloadDirectory, const NewLineage &lineage)
{
    if (!isSlug(lineage.platform))
        return fail(ErrorCode::InvalidInput,
                    "'" + lineage.platform + "' is no platform; expected a word as pocl or sm90.");
    if (!lineage.name.empty() && !isSlug(lineage.name))
        return fail(ErrorCode::InvalidInput,
                    "'" + lineage.name
                        + "' is no name; expected 1 to 64 of a-z, 0-9, '_' and '-', not '-' first.");
    std::error_code ignored;
    if (fs::exists(workloadDirectory / "lineages" / folderOf(lineage), ignored))
        return fail(ErrorCode::Conflict, "There is a lineage " + lineage.workload + '/' + folderOf(lineage)
                                             + " already; choose another name.");
    return {};
}

Result<Lineage> beginLineage(const fs::path &workloadDirectory, const NewLineage &begun,
                             std::string_view candidateText, const std::optional<gate::Trial> &trial)
{
    const std::string key = begun.workload + '/' + folderOf(begun);
    if (const Status free = checkName(workloadDirectory, begun); !free)
        return tl::unexpected(free.error());
    const auto candidate = kernel::parseCandidate(candidateText, "K00");
    if (!candidate)
        return tl::unexpected(candidate.error());
    if (const std::string why = trial ? refusal(begun, candidateText, *trial) : std::string(); !why.empty())
        return fail(ErrorCode::InvalidInput, "Cannot begin the lineage " + key + ": " + why);

    Lineage lineage;
    lineage.workload = begun.workload;
    lineage.platform = begun.platform;
    lineage.name = begun.name;
    lineage.surface = candidate->surface;
    lineage.title = begun.title.empty() ? begun.workload + " on " + begun.platform : begun.title;
    lineage.origin = begun.origin;
    lineage.termination = "unknown";
    lineage.reason = "Begun from one kernel.";
    lineage.states.push_back({"K00", std::string("K00") + candidate->surface.language().extension,
                              begun.stateTitle.empty() ? "as it was brought" : begun.stateTitle,
                              trial ? trial->id : std::string()});
    std::optional<gate::Trial> own = trial;
    if (own) {
        own->file = lineage.states.front().file;
        own->parent.clear();
    }
    const std::vector<LineageFile> texts{{lineage.states.front().file, std::string(candidateText)}};
    return createLineage(workloadDirectory, lineage, texts, own);
}

Result<Lineage> createLineage(const fs::path &workloadDirectory, const Lineage &lineage,
                              const std::vector<LineageFile> &texts, const std::optional<gate::Trial> &trial,
                              const std::stop_token &stop)
{
    const NewLineage named{lineage.workload, lineage.platform, lineage.name, {}, {}, {}};
    if (const Status free = checkName(workloadDirectory, named); !free)
        return tl::unexpected(free.error());
    const fs::path folder = workloadDirectory / "lineages" / lineage.folder();
    // Hidden, so that nobody reads it before it is whole.
    const fs::path partial =
        folder.parent_path() / ('.' + lineage.folder() + ".partial-" + std::to_string(::getpid()));
    std::error_code problem;
    fs::remove_all(partial, problem);
    Status written = writeFolder(partial, lineage, texts, trial, stop);
    if (written) {
        fs::rename(partial, folder, problem);
        if (problem)
            written =
                fail(ErrorCode::Io, "Cannot write '" + folder.string() + "': " + problem.message() + '.');
    }
    if (!written) {
        fs::remove_all(partial, problem);
        return tl::unexpected(written.error());
    }
    return readLineage(folder);
}

} // namespace klineage::lineage
