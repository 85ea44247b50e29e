// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/childprocess.h"

#include "core/process/spawn.h"
#include "core/process/syscallnumbers.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace klineage::process {

namespace {

struct PipeEnds {
    FileDescriptor read;
    FileDescriptor write;
};

Result<PipeEnds> makePipe()
{
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0)
        return fail(ErrorCode::Io, std::string("Cannot create a pipe: ") + std::strerror(errno) + ".");
    return PipeEnds{FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

void setNonBlocking(int fd)
{
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

const char *explain(int signal)
{
    switch (signal) {
    case SIGSEGV:
        return "SIGSEGV (invalid memory access)";
    case SIGBUS:
        return "SIGBUS (invalid memory access)";
    case SIGFPE:
        return "SIGFPE (arithmetic exception, such as an integer division by zero)";
    case SIGILL:
        return "SIGILL (illegal instruction)";
    case SIGABRT:
        return "SIGABRT (it aborted itself)";
    case SIGKILL:
        return "SIGKILL (killed)";
    case SIGTRAP:
        return "SIGTRAP (a trap instruction)";
    case SIGXCPU:
        return "SIGXCPU (too much processor time)";
    case SIGXFSZ:
        return "SIGXFSZ (too large a file)";
    default:
        return nullptr;
    }
}

} // namespace

std::string ExitStatus::describe() const
{
    if (signal == 0)
        return "exit code " + std::to_string(exitCode);
    if (const char *known = explain(signal))
        return known;
    return "signal " + std::to_string(signal);
}

Result<ChildProcess> ChildProcess::start(const ChildOptions &options)
{
    ChildProcess child;
    child.m_outputCapBytes = options.outputCapBytes;
    PipeEnds in, out, err;
    const auto open = [](bool wanted, PipeEnds &ends) -> Status {
        if (!wanted)
            return {};
        auto made = makePipe();
        if (!made)
            return tl::unexpected(made.error());
        ends = std::move(*made);
        return {};
    };
    for (auto &status :
         {open(options.openStdin, in), open(options.captureStdout, out), open(options.captureStderr, err)}) {
        if (!status)
            return tl::unexpected(status.error());
    }
    FileDescriptor null;
    if (!options.openStdin)
        null = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto pid =
        spawn(options, {options.openStdin ? in.read.get() : null.get(), out.write.get(), err.write.get()});
    if (!pid)
        return tl::unexpected(pid.error());
    child.m_pid = *pid;
    child.m_pidFd = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    child.m_stdin = std::move(in.write);
    child.m_stdout = std::move(out.read);
    child.m_stderr = std::move(err.read);
    for (const int fd : {child.m_stdin.get(), child.m_stdout.get(), child.m_stderr.get()}) {
        if (fd >= 0)
            setNonBlocking(fd);
    }
    return child;
}

ChildProcess::ChildProcess(ChildProcess &&other) noexcept
    : m_pid(std::exchange(other.m_pid, -1))
    , m_status(other.m_status)
    , m_outputCapBytes(other.m_outputCapBytes)
    , m_pidFd(std::move(other.m_pidFd))
    , m_stdin(std::move(other.m_stdin))
    , m_stdout(std::move(other.m_stdout))
    , m_stderr(std::move(other.m_stderr))
    , m_out(std::move(other.m_out))
    , m_err(std::move(other.m_err))
{}

ChildProcess &ChildProcess::operator=(ChildProcess &&other) noexcept
{
    if (this != &other) {
        kill();
        m_pid = std::exchange(other.m_pid, -1);
        m_status = other.m_status;
        m_outputCapBytes = other.m_outputCapBytes;
        m_pidFd = std::move(other.m_pidFd);
        m_stdin = std::move(other.m_stdin);
        m_stdout = std::move(other.m_stdout);
        m_stderr = std::move(other.m_stderr);
        m_out = std::move(other.m_out);
        m_err = std::move(other.m_err);
    }
    return *this;
}

ChildProcess::~ChildProcess()
{
    kill();
}

void ChildProcess::appendPollFds(std::vector<pollfd> &fds) const
{
    fds.push_back({m_stdout.get(), POLLIN, 0});
    fds.push_back({m_stderr.get(), POLLIN, 0});
    fds.push_back({m_status ? -1 : m_pidFd.get(), POLLIN, 0});
}

void ChildProcess::drainStream(FileDescriptor &fd, CapturedOutput &output)
{
    char buffer[16384];
    // Bounded, so that a flood cannot keep the caller from looking at its deadline.
    for (int round = 0; fd && round < 64; ++round) {
        const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            fd.close();
            return;
        }
        const auto bytes = static_cast<std::size_t>(got);
        const std::size_t kept = std::min(bytes, m_outputCapBytes - output.text.size());
        output.text.append(buffer, kept);
        output.droppedBytes += bytes - kept;
    }
}

std::optional<ExitStatus> ChildProcess::tryWait()
{
    if (m_status || m_pid < 0)
        return m_status;
    siginfo_t info = {};
    // WNOWAIT keeps the process id, and so the group id, ours until the rest of the group is dead.
    if (::waitid(P_PID, static_cast<id_t>(m_pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0
        || info.si_pid == 0)
        return std::nullopt;
    kill();
    return m_status;
}

Result<ExitStatus> ChildProcess::wait(Deadline deadline)
{
    for (;;) {
        drain();
        if (const auto status = tryWait()) {
            drain();
            return *status;
        }
        if (deadline.passed())
            return fail(ErrorCode::Timeout, "The process did not end in time.");
        std::vector<pollfd> fds;
        appendPollFds(fds);
        const int cap = m_pidFd ? 60'000 : 5; // kernels without pidfd_open: look often
        ::poll(fds.data(), fds.size(), std::min(cap, deadline.pollTimeoutMs()));
    }
}

Status ChildProcess::raiseLimit(const ResourceLimit &limit) const
{
    struct rlimit now = {};
    const auto resource = static_cast<__rlimit_resource>(limit.resource);
    if (m_pid < 0 || ::prlimit(m_pid, resource, nullptr, &now) != 0)
        return fail(ErrorCode::Io,
                    std::string("Cannot read a limit of a process: ") + std::strerror(errno) + ".");
    const rlim_t wanted = std::min<rlim_t>(limit.value, now.rlim_max);
    if (now.rlim_cur >= wanted)
        return {};
    now.rlim_cur = wanted;
    if (::prlimit(m_pid, resource, &now, nullptr) != 0)
        return fail(ErrorCode::Io,
                    std::string("Cannot set a limit of a process: ") + std::strerror(errno) + ".");
    return {};
}

ExitStatus ChildProcess::kill() noexcept
{
    if (m_status || m_pid < 0)
        return m_status.value_or(ExitStatus{});
    ::kill(-m_pid, SIGKILL);
    ::kill(m_pid, SIGKILL); // if it has left its group
    int raw = 0;
    pid_t got = 0;
    struct rusage usage = {};
    do {
        got = ::wait4(m_pid, &raw, 0, &usage);
    } while (got < 0 && errno == EINTR);
    ExitStatus status;
    status.peakBytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    if (got == m_pid && WIFEXITED(raw))
        status.exitCode = WEXITSTATUS(raw);
    else if (got == m_pid && WIFSIGNALED(raw))
        status.signal = WTERMSIG(raw);
    m_status = status;
    return status;
}

Result<std::pair<FileDescriptor, FileDescriptor>> socketPair()
{
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return fail(ErrorCode::Io, std::string("Cannot create a socket pair: ") + std::strerror(errno) + ".");
    return std::pair{FileDescriptor(fds[0]), FileDescriptor(fds[1])};
}

} // namespace klineage::process
