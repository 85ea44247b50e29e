// SPDX-License-Identifier: GPL-3.0-or-later
//
// PR_SET_PDEATHSIG is sent when the thread that forked ends, not when the process does. A pool thread of the application that
// starts a gate would take it along when the pool shrinks. So one detached thread, which lives as long as the process, forks for
// everyone. Between fork and exec only async-signal-safe calls are made, on memory prepared beforehand.
#include "core/process/spawn.h"

#include "core/process/confinement.h"
#include "core/process/syscallnumbers.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <future>
#include <linux/close_range.h>
#include <mutex>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>

extern char **environ;

namespace klineage::process {

namespace {

/// Runs tasks on one detached thread for the life of the process; never destroyed.
class SpawnThread
{
public:
    static SpawnThread &instance()
    {
        static auto *thread = new SpawnThread;
        return *thread;
    }
    Result<pid_t> run(std::function<Result<pid_t>()> work)
    {
        std::packaged_task<Result<pid_t>()> task(std::move(work));
        auto future = task.get_future();
        {
            const std::lock_guard lock(m_mutex);
            m_tasks.push_back(std::move(task));
        }
        m_wake.notify_one();
        return future.get();
    }

private:
    SpawnThread()
    {
        std::thread([this] { loop(); }).detach();
    }
    [[noreturn]] void loop()
    {
        for (;;) {
            std::unique_lock lock(m_mutex);
            m_wake.wait(lock, [this] { return !m_tasks.empty(); });
            auto task = std::move(m_tasks.front());
            m_tasks.pop_front();
            lock.unlock();
            task();
        }
    }
    std::mutex m_mutex;
    std::condition_variable m_wake;
    std::deque<std::packaged_task<Result<pid_t>()>> m_tasks;
};

/// Everything the child needs, laid out before fork.
struct Prepared {
    std::vector<char *> arguments;
    std::vector<std::string> environmentText;
    std::vector<char *> environment;
    std::vector<std::string> programs; ///< candidates along PATH
    std::vector<int> moved;            ///< scratch for the descriptor shuffle
    std::optional<Confinement> confinement;
    const ChildOptions *options = nullptr;
    StandardFds standard;
    pid_t parent = 0;
};

std::vector<std::string> programsOf(const std::string &name)
{
    if (name.find('/') != std::string::npos)
        return {name};
    const char *path = std::getenv("PATH");
    std::vector<std::string> programs;
    std::string rest = path ? path : "/usr/bin:/bin";
    for (std::size_t begin = 0; begin <= rest.size();) {
        const std::size_t end = std::min(rest.find(':', begin), rest.size());
        if (end > begin)
            programs.push_back(rest.substr(begin, end - begin) + "/" + name);
        begin = end + 1;
    }
    return programs;
}

/// variable: "NAME=value"; an entry: "NAME" or "BEGINNING*".
bool inherited(const ChildOptions &options, const std::string &variable)
{
    if (!options.inheritedVariables)
        return true;
    const std::string name = variable.substr(0, variable.find('='));
    return std::any_of(options.inheritedVariables->begin(), options.inheritedVariables->end(),
                       [&](const std::string &entry) {
                           return !entry.empty() && entry.back() == '*'
                                      ? name.compare(0, entry.size() - 1, entry, 0, entry.size() - 1) == 0
                                      : name == entry;
                       });
}

Prepared prepare(const ChildOptions &options, const StandardFds &standard)
{
    Prepared prepared;
    prepared.options = &options;
    prepared.standard = standard;
    prepared.parent = ::getpid();
    prepared.programs = programsOf(options.command.front());
    for (const auto &argument : options.command)
        prepared.arguments.push_back(const_cast<char *>(argument.c_str()));
    prepared.arguments.push_back(nullptr);
    for (char **entry = environ; entry && *entry; ++entry) {
        const std::string text = *entry;
        const auto replaced =
            std::any_of(options.environment.begin(), options.environment.end(), [&](const auto &e) {
                return text.size() > e.first.size() && text.compare(0, e.first.size(), e.first) == 0
                       && text[e.first.size()] == '=';
            });
        if (!replaced && inherited(options, text))
            prepared.environmentText.push_back(text);
    }
    for (const auto &[name, value] : options.environment)
        prepared.environmentText.push_back(name + "=" + value);
    for (auto &text : prepared.environmentText)
        prepared.environment.push_back(text.data());
    prepared.environment.push_back(nullptr);
    prepared.moved.resize(options.inherited.size() + 4);
    return prepared;
}

[[noreturn]] void reportAndExit(int errorFd)
{
    const int code = errno;
    [[maybe_unused]] const auto written = ::write(errorFd, &code, sizeof code);
    ::_exit(127);
}

void resetSignals()
{
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGQUIT})
        ::signal(signal, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

/// Copies every descriptor out of the way first: a target number may be another one's source.
int placeDescriptors(Prepared &p, int errorFd)
{
    constexpr int safe = 200;
    const auto &inherited = p.options->inherited;
    const int standard[3] = {p.standard.in, p.standard.out, p.standard.err};
    std::size_t slot = 0;
    const int movedError = ::fcntl(errorFd, F_DUPFD_CLOEXEC, safe);
    for (const int fd : standard)
        p.moved[slot++] = fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, safe);
    for (const auto &entry : inherited)
        p.moved[slot++] = ::fcntl(entry.parentFd, F_DUPFD_CLOEXEC, safe);
    ::syscall(SYS_close_range, 3u, ~0u, static_cast<unsigned>(CLOSE_RANGE_CLOEXEC));
    for (int i = 0; i < 3; ++i) {
        if (p.moved[static_cast<std::size_t>(i)] >= 0 && ::dup2(p.moved[static_cast<std::size_t>(i)], i) < 0)
            reportAndExit(movedError);
    }
    for (std::size_t i = 0; i < inherited.size(); ++i) {
        if (p.moved[3 + i] < 0 || ::dup2(p.moved[3 + i], inherited[i].childFd) < 0)
            reportAndExit(movedError);
    }
    return movedError;
}

[[noreturn]] void runChild(Prepared &p, int errorFd)
{
    ::setpgid(0, 0);
    resetSignals();
    errorFd = placeDescriptors(p, errorFd);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != p.parent)
        ::_exit(127); // the parent died before the line above
    for (const auto &limit : p.options->limits) {
        struct rlimit current = {};
        ::getrlimit(static_cast<__rlimit_resource_t>(limit.resource), &current);
        const rlim_t value = std::min<rlim_t>(limit.value, current.rlim_max);
        const struct rlimit wanted = {limit.atFirst == 0 ? value : std::min<rlim_t>(limit.atFirst, value),
                                      value};
        ::setrlimit(static_cast<__rlimit_resource_t>(limit.resource), &wanted);
    }
    if (!p.options->workingDirectory.empty() && ::chdir(p.options->workingDirectory.c_str()) != 0)
        reportAndExit(errorFd);
    if (p.confinement) {
        // Memory that runs out is its fault before it is anybody else's.
        if (const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); score >= 0) {
            [[maybe_unused]] const auto written = ::write(score, "1000", 4);
            ::close(score);
        }
        if (const int problem = p.confinement->enter(); problem != 0) {
            errno = problem;
            reportAndExit(errorFd);
        }
    }
    errno = ENOENT;
    for (const auto &program : p.programs) {
        ::execve(program.c_str(), p.arguments.data(), p.environment.data());
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            break;
    }
    reportAndExit(errorFd);
}

Result<pid_t> forkAndExec(const ChildOptions &options, const StandardFds &standard)
{
    Prepared prepared = prepare(options, standard);
    if (options.isolation) {
        auto confinement = Confinement::make(*options.isolation, prepared.programs, isolationSupport());
        if (!confinement)
            return tl::unexpected(confinement.error());
        prepared.confinement = std::move(*confinement);
    }
    int errorPipe[2];
    if (::pipe2(errorPipe, O_CLOEXEC) != 0)
        return fail(ErrorCode::Io, std::string("Cannot create a pipe: ") + std::strerror(errno) + ".");
    FileDescriptor readEnd(errorPipe[0]);
    FileDescriptor writeEnd(errorPipe[1]);
    const pid_t pid = ::fork();
    if (pid < 0)
        return fail(ErrorCode::Io, std::string("Cannot fork: ") + std::strerror(errno) + ".");
    if (pid == 0)
        runChild(prepared, writeEnd.get());
    ::setpgid(pid, pid); // both sides set it, whichever comes first
    writeEnd.close();
    int code = 0;
    ssize_t got = 0;
    do {
        got = ::read(readEnd.get(), &code, sizeof code);
    } while (got < 0 && errno == EINTR);
    if (got == static_cast<ssize_t>(sizeof code)) {
        ::waitpid(pid, nullptr, 0);
        return fail(code == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
                    "Cannot start " + options.command.front() + ": " + std::strerror(code) + ".");
    }
    return pid;
}

} // namespace

Result<pid_t> spawn(const ChildOptions &options, const StandardFds &standard)
{
    if (options.command.empty())
        return fail(ErrorCode::InvalidInput, "Cannot start a process: the command is empty.");
    return SpawnThread::instance().run([&] { return forkAndExec(options, standard); });
}

} // namespace klineage::process
