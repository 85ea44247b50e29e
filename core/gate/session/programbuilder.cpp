// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/programbuilder.h"

#include "core/base/filedescriptor.h"
#include "core/device/opencl/scrubkernel.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace klineage::gate {

namespace fs = std::filesystem;

namespace {

constexpr double builderStartSeconds = 60;
constexpr double ownProgramSeconds = 60;
constexpr int mostBuilt = 64; ///< by one process, whose compiler gives back little memory
constexpr int deepest = 8;

/// What may still be copied.
struct Room {
    std::size_t files = 1024;
    std::size_t bytes = std::size_t{256} << 20;
};

tl::unexpected<Error> cannot(const std::string &what)
{
    return fail(ErrorCode::Io, "Cannot " + what + ": " + std::strerror(errno) + ".");
}

FileDescriptor folderAt(int parent, const char *name)
{
    return FileDescriptor(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

Status copyFile(int from, int to, const char *name, Room &room)
{
    const FileDescriptor in(::openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info = {};
    if (!in || ::fstat(in.get(), &info) != 0 || !S_ISREG(info.st_mode))
        return {};
    const FileDescriptor out(
        ::openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, info.st_mode & 0700));
    if (!out)
        return errno == EEXIST ? Status() : cannot("write a built program");
    if (room.files == 0)
        return fail(ErrorCode::InvalidInput, "A built program has too many files.");
    --room.files;
    std::array<char, 65536> part{};
    for (;;) {
        const ssize_t got = ::read(in.get(), part.data(), part.size());
        if (got == 0)
            return {};
        if (got < 0)
            return cannot("read a built program");
        if (static_cast<std::size_t>(got) > room.bytes)
            return fail(ErrorCode::InvalidInput, "A built program is too large.");
        room.bytes -= static_cast<std::size_t>(got);
        if (::write(out.get(), part.data(), static_cast<std::size_t>(got)) != got)
            return cannot("write a built program");
    }
}

Status copyFolder(FileDescriptor from, int to, Room &room, int depth)
{
    const int source = from.get();
    const std::unique_ptr<DIR, int (*)(DIR *)> listing(::fdopendir(::dup(source)), &::closedir);
    if (!listing)
        return cannot("list a built program");
    while (const dirent *entry = ::readdir(listing.get())) {
        const std::string name = entry->d_name;
        if (name == "." || name == "..")
            continue;
        FileDescriptor inner = folderAt(source, name.c_str());
        if (!inner) {
            if (auto copied = copyFile(source, to, name.c_str(), room); !copied)
                return copied;
            continue;
        }
        if (depth == deepest)
            continue;
        if (::mkdirat(to, name.c_str(), 0700) != 0 && errno != EEXIST)
            return cannot("make a folder for a built program");
        const FileDescriptor target = folderAt(to, name.c_str());
        if (!target)
            return cannot("open a folder for a built program");
        if (auto copied = copyFolder(std::move(inner), target.get(), room, depth + 1); !copied)
            return copied;
    }
    return {};
}

/// The folders two below: one a program.
std::set<fs::path> programsIn(const fs::path &folder)
{
    std::set<fs::path> programs;
    std::error_code ignored;
    for (const auto &outer : fs::directory_iterator(folder, ignored)) {
        if (!fs::is_directory(outer.symlink_status(ignored)))
            continue;
        for (const auto &inner : fs::directory_iterator(outer.path(), ignored))
            programs.insert(inner.path());
    }
    return programs;
}

} // namespace

Status copyPrograms(const fs::path &from, const fs::path &to)
{
    FileDescriptor source = folderAt(AT_FDCWD, from.c_str());
    const FileDescriptor target = folderAt(AT_FDCWD, to.c_str());
    if (!source || !target)
        return cannot("open the folders of built programs");
    Room room;
    return copyFolder(std::move(source), target.get(), room, 0);
}

ProgramBuilder::ProgramBuilder(std::vector<std::string> command, kernel::DeviceKind device)
    : m_command(std::move(command))
    , m_device(device)
{}

void ProgramBuilder::beginTrial()
{
    if (m_built >= mostBuilt)
        m_session.reset();
    if (!m_session)
        return;
    std::error_code ignored;
    for (const fs::path &program : programsIn(m_session->programs())) {
        if (!m_own.contains(program))
            fs::remove_all(program, ignored);
    }
}

bool ProgramBuilder::ensureStarted(const std::stop_token &stop)
{
    if (m_session && m_session->alive())
        return true;
    m_session.reset();
    if (!m_useful)
        return false;
    auto started = WorkerSession::start(m_command, m_device, builderStartSeconds, stop);
    if (!started)
        return false;
    m_session = std::move(*started);
    m_built = 0;
    m_session->beginTrial(stop, process::Deadline::never());
    const auto own = m_session->load({}, opencl::scrubSource, {}, ownProgramSeconds);
    if (!own || !own->module || !m_session->unload(*own->module)) {
        m_session.reset(); // a worker will say what is wrong
        return false;
    }
    m_own = programsIn(m_session->programs());
    m_useful = !m_own.empty();
    if (!m_useful)
        m_session.reset();
    return m_useful;
}

WorkerResult<LoadedModule> ProgramBuilder::load(WorkerSession &session, const std::string &source,
                                                const std::map<std::string, std::int64_t> &tunables,
                                                double limitSeconds, const std::stop_token &stop,
                                                process::Deadline deadline)
{
    if (!ensureStarted(stop))
        return session.load({}, source, tunables, limitSeconds);
    ++m_built;
    m_session->beginTrial(stop, deadline);
    auto built = m_session->load({}, source, tunables, limitSeconds);
    if (!built || !built->module)
        return built;
    // Without them the session compiles for itself.
    if (m_session->unload(*built->module))
        (void)copyPrograms(m_session->programs(), session.programs());
    auto loaded = session.load({}, source, tunables, limitSeconds);
    if (loaded && loaded->module)
        loaded->output = std::move(built->output);
    return loaded;
}

} // namespace klineage::gate
