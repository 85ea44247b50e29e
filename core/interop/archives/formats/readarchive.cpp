// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/listtext.h"
#include "core/interop/archives/formats/readers.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace klineage::interop {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t maxLookedThrough = 200'000; ///< entries of a folder

/// What a folder has, sorted. Links are none of it.
struct FolderView {
    std::vector<fs::path> folders;
    std::vector<fs::path> files;
};

FolderView viewOf(const fs::path &folder)
{
    FolderView view;
    std::error_code problem;
    std::size_t seen = 0;
    for (fs::directory_iterator it(folder, problem), end; !problem && it != end && seen < maxLookedThrough;
         it.increment(problem), ++seen) {
        std::error_code ignored;
        const fs::file_status status = it->symlink_status(ignored);
        if (fs::is_directory(status))
            view.folders.push_back(it->path());
        else if (fs::is_regular_file(status))
            view.files.push_back(it->path());
    }
    std::sort(view.folders.begin(), view.folders.end());
    std::sort(view.files.begin(), view.files.end());
    return view;
}

bool isCheckpoint(const fs::path &folder)
{
    std::error_code ignored;
    return fs::is_directory(fs::symlink_status(folder / "programs", ignored))
           || fs::is_symlink(fs::symlink_status(folder / "programs", ignored));
}

std::optional<long> checkpointNumber(const fs::path &folder)
{
    const std::string name = folder.filename().string();
    constexpr std::string_view begin = "checkpoint_";
    long number = 0;
    if (!name.starts_with(begin))
        return std::nullopt;
    const auto [stopped, problem] =
        std::from_chars(name.data() + begin.size(), name.data() + name.size(), number);
    return problem == std::errc() && stopped == name.data() + name.size() ? std::optional(number)
                                                                          : std::nullopt;
}

/// The one with the highest number, and how many there are.
std::pair<fs::path, std::size_t> newestCheckpoint(const fs::path &from)
{
    fs::path newest;
    std::size_t count = 0;
    for (const fs::path &folder : {from, from / "checkpoints", from / "openevolve_output" / "checkpoints"}) {
        std::error_code ignored;
        if (!fs::is_directory(fs::symlink_status(folder, ignored)) && folder != from)
            continue;
        for (const fs::path &one : viewOf(folder).folders) {
            if (!checkpointNumber(one) || !isCheckpoint(one))
                continue;
            ++count;
            if (newest.empty() || *checkpointNumber(one) > *checkpointNumber(newest))
                newest = one;
        }
        if (count > 0)
            break;
    }
    return {newest, count};
}

bool isStepLog(const fs::path &file)
{
    const std::string name = file.filename().string();
    return name.starts_with("step_") && name.ends_with("_log.json");
}

tl::unexpected<Error> noArchive(const fs::path &from, const std::string &why)
{
    return fail(ErrorCode::InvalidInput, "'" + from.filename().string() + "' is no archive: " + why);
}

Result<Archive> readDatabaseIn(const fs::path &from, const FolderView &view, const std::stop_token &stop)
{
    std::vector<fs::path> databases;
    std::vector<std::string> names;
    bool hasPrompts = false;
    for (const fs::path &file : view.files) {
        if (!isSqliteFile(file))
            continue;
        if (file.stem() == "prompts") { // ShinkaEvolve keeps its prompts' own evolution in such a file
            hasPrompts = true;
            continue;
        }
        databases.push_back(file);
        names.push_back(file.filename().string());
    }
    if (databases.empty())
        return noArchive(
            from,
            "it has no checkpoint_N with programs/ (OpenEvolve), no step_N_log.json (AdaExplore) and no SQLite file "
            "(ShinkaEvolve).");
    if (databases.size() > 1)
        return noArchive(from,
                         "it has several SQLite files (" + listed(names) + "); name the one that is meant.");
    Result<Archive> archive = readShinka(databases.front(), stop);
    if (archive && hasPrompts)
        archive->notes.emplace_back("The database of prompts beside it was not read.");
    return archive;
}

} // namespace

Result<Archive> readArchive(const fs::path &from, const std::stop_token &stop)
{
    std::error_code problem;
    if (!fs::exists(from, problem))
        return fail(ErrorCode::NotFound, "There is no '" + from.string() + "'.");
    const fs::path normal = fs::absolute(from, problem).lexically_normal();
    const fs::path root = normal.has_filename() ? normal : normal.parent_path();
    if (!fs::is_directory(root, problem)) {
        if (fs::is_symlink(fs::symlink_status(root, problem)))
            return noArchive(root, "it is a link, which is not followed.");
        if (!isSqliteFile(root))
            return noArchive(root, "it is neither a folder nor an SQLite file.");
        return readShinka(root, stop);
    }
    if (isCheckpoint(root))
        return readOpenEvolve(root, stop);
    if (const auto [newest, count] = newestCheckpoint(root); count > 0) {
        Result<Archive> archive = readOpenEvolve(newest, stop);
        if (archive && count > 1)
            archive->notes.push_back("There are " + std::to_string(count)
                                     + " checkpoints; this is the newest, " + newest.filename().string()
                                     + '.');
        return archive;
    }
    const FolderView view = viewOf(root);
    if (std::any_of(view.files.begin(), view.files.end(), isStepLog))
        return readAdaExplore(root, stop);
    constexpr std::size_t mostLookedInto = 100;
    for (std::size_t i = 0; i < std::min(view.folders.size(), mostLookedInto); ++i) {
        const fs::path &folder = view.folders[i];
        const FolderView below = viewOf(folder);
        if (std::any_of(below.files.begin(), below.files.end(), isStepLog))
            return noArchive(
                root, "its folders are AdaExplore's, one a problem; name the one that is meant, such as "
                          + folder.filename().string() + '.');
    }
    return readDatabaseIn(root, view, stop);
}

} // namespace klineage::interop
