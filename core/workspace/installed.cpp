// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/installed.h"

#include "core/workspace/workspace.h"

#include <algorithm>
#include <unistd.h>

namespace klineage {

namespace {

namespace fs = std::filesystem;

constexpr const char *copiedParts[] = {"workloads", "skills", "runs", "experiments", "pool.toml"};

bool isRoot(const fs::path &folder)
{
    const Result<fs::path> found = findWorkspace(folder);
    return found && *found == folder;
}

bool isWithin(const fs::path &path, const fs::path &folder)
{
    return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

/// Absolute, without links and without a slash at its end.
fs::path cleanPath(const fs::path &path, std::error_code &problem)
{
    const fs::path clean = fs::weakly_canonical(fs::absolute(path, problem), problem);
    return clean.has_filename() ? clean : clean.parent_path();
}

/// Folders and files get the rights of new ones: what was installed can be read-only throughout. Throws filesystem_error.
void copyEntry(const fs::directory_entry &entry, const fs::path &to)
{
    if (entry.is_symlink()) {
        fs::copy_symlink(entry.path(), to);
    } else if (entry.is_directory()) {
        fs::create_directory(to);
    } else if (entry.is_regular_file()) {
        fs::copy_file(entry.path(), to);
        fs::permissions(to, fs::perms::owner_write, fs::perm_options::add);
    }
}

/// False when it was stopped. Throws filesystem_error.
bool copyParts(const fs::path &from, const fs::path &to, const std::stop_token &stop)
{
    fs::create_directories(to);
    for (const char *part : copiedParts) {
        const fs::directory_entry top(from / part);
        if (!top.exists())
            continue;
        copyEntry(top, to / part);
        if (!top.is_directory() || top.is_symlink())
            continue;
        for (const fs::directory_entry &entry : fs::recursive_directory_iterator(top.path())) {
            if (stop.stop_requested())
                return false;
            copyEntry(entry, to / entry.path().lexically_relative(from));
        }
    }
    return true;
}

} // namespace

std::optional<fs::path> installedWorkspace()
{
    std::error_code problem;
    const fs::path program = fs::read_symlink("/proc/self/exe", problem);
    const fs::path folder = (program.parent_path() / KLINEAGE_WORKSPACE_FROM_PROGRAMS).lexically_normal();
    return !problem && isRoot(folder) ? std::optional(folder) : std::nullopt;
}

bool isReadOnly(const fs::path &root)
{
    std::error_code ignored;
    const std::optional<fs::path> installed = installedWorkspace();
    if (installed && fs::equivalent(*installed, root, ignored))
        return true;
    const fs::path parts[] = {root, root / "workloads", root / "skills"};
    return std::any_of(std::begin(parts), std::end(parts),
                       [](const fs::path &part) { return ::access(part.c_str(), W_OK) != 0; });
}

Status copyWorkspace(const fs::path &from, const fs::path &to, const std::stop_token &stop)
{
    std::error_code problem;
    const fs::path source = cleanPath(from, problem);
    const fs::path target = cleanPath(to, problem);
    if (problem || !isRoot(source))
        return fail(ErrorCode::NotFound, "Cannot copy '" + from.string() + "': it is no workspace.");
    if (isWithin(target, source))
        return fail(ErrorCode::InvalidInput, "Cannot copy '" + source.string() + "' into itself.");
    if (fs::exists(target, problem) && !fs::is_empty(target, problem))
        return fail(ErrorCode::Conflict,
                    "Cannot copy to '" + target.string() + "': there is something already.");

    const fs::path partial = target.string() + ".partial-" + std::to_string(::getpid());
    Status status;
    try {
        if (copyParts(source, partial, stop))
            fs::rename(partial, target);
        else
            status = fail(ErrorCode::Cancelled, "The copy to '" + target.string() + "' was stopped.");
    } catch (const fs::filesystem_error &error) {
        status = fail(ErrorCode::Io, "Cannot copy the workspace to '" + target.string()
                                         + "': " + error.code().message() + ".");
    }
    if (!status)
        fs::remove_all(partial, problem);
    return status;
}

} // namespace klineage
