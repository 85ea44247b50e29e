// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tries one thing that an isolated process may or may not do: isolationprobe WHAT [ARGUMENT]. Exit code 0: done, 1: refused, 2: it
// failed for another reason.
#include "core/process/isolation.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <string>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace {

int outcome(bool done)
{
    if (done)
        return 0;
    const int problem = errno;
    std::printf("%s\n", std::strerror(problem));
    return problem == EPERM || problem == EACCES ? 1 : 2;
}

int readParent()
{
    char byte = 0;
    const iovec mine{&byte, 1};
    const iovec theirs{reinterpret_cast<void *>(4096), 1};
    return outcome(::process_vm_readv(::getppid(), &mine, 1, &theirs, 1, 0) >= 0 || errno == EFAULT);
}

int startThread()
{
    bool ran = false;
    std::thread([&] { ran = true; }).join();
    return ran ? 0 : 2;
}

int startProgram(const char *program)
{
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::execl(program, program, nullptr);
        ::_exit(outcome(false));
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int limitParent()
{
    struct rlimit limit = {};
    return outcome(::prlimit(::getppid(), RLIMIT_NOFILE, nullptr, &limit) == 0);
}

int startSibling()
{
    const long pid = ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (pid == 0)
        ::_exit(0);
    return outcome(pid > 0);
}

int startChild()
{
    const pid_t pid = ::fork();
    if (pid == 0)
        ::_exit(0);
    return outcome(pid > 0);
}

int moveToOneProcessor()
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    return outcome(::sched_setaffinity(::getppid(), sizeof one, &one) == 0
                   || ::sched_setaffinity(0, sizeof one, &one) == 0);
}

/// Of the program itself, which needs more rights the second time.
int mapProgram()
{
    return outcome(::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                   != MAP_FAILED);
}

int compute()
{
    double sum = 0;
    for (std::size_t bytes = 1; bytes < std::size_t{1} << 26; bytes *= 4) {
        auto *memory = static_cast<double *>(std::malloc(bytes * sizeof(double)));
        memory[0] = static_cast<double>(bytes);
        sum += memory[0];
        std::free(memory);
    }
    struct timespec now = {};
    return ::clock_gettime(CLOCK_MONOTONIC, &now) == 0 && sum > 0 && ::write(1, "", 0) == 0 ? 0 : 2;
}

int adjustClock()
{
    struct timeval now = {};
    ::gettimeofday(&now, nullptr);
    return outcome(::settimeofday(&now, nullptr) == 0);
}

} // namespace

int main(int argc, char **argv)
{
    std::string what = argc > 1 ? argv[1] : "";
    const char *path = argc > 2 ? argv[2] : "";
    if (what.rfind("sealed-", 0) == 0) {
        if (!klineage::process::sealProcess())
            return 2;
        what = what.substr(7);
    }
    if (what == "affinity")
        return moveToOneProcessor();
    if (what == "priority")
        return outcome(::setpriority(PRIO_PROCESS, 0, 5) == 0);
    if (what == "segment")
        return outcome(::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0);
    if (what == "semaphore")
        return outcome(::semget(IPC_PRIVATE, 1, IPC_CREAT | 0600) >= 0);
    if (what == "watch")
        return outcome(::inotify_init1(IN_CLOEXEC) >= 0);
    if (what == "sibling")
        return startSibling();
    if (what == "child")
        return startChild();
    if (what == "code")
        return mapProgram();
    if (what == "compute")
        return compute();
    if (what == "look") {
        struct stat info = {};
        return outcome(::stat(path[0] ? path : "/etc", &info) == 0);
    }
    if (what == "read")
        return outcome(::open(path, O_RDONLY | O_CLOEXEC) >= 0);
    if (what == "list")
        return outcome(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0);
    if (what == "write")
        return outcome(::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0);
    if (what == "remove")
        return outcome(::unlink(path) == 0);
    if (what == "move") // beneath PATH, from one folder to another
        return outcome(
            ::mkdir((std::string(path) + "/a").c_str(), 0700) == 0
            && ::mkdir((std::string(path) + "/a/b").c_str(), 0700) == 0
            && ::open((std::string(path) + "/a/f").c_str(), O_WRONLY | O_CREAT, 0600) >= 0
            && ::rename((std::string(path) + "/a/f").c_str(), (std::string(path) + "/a/b/f").c_str()) == 0);
    if (what == "truncate")
        return outcome(::truncate(path, 0) == 0);
    if (what == "chmod")
        return outcome(::chmod(path, 0644) == 0);
    if (what == "execute")
        return startProgram(path);
    if (what == "internet")
        return outcome(::socket(AF_INET, SOCK_STREAM, 0) >= 0);
    if (what == "datagram")
        return outcome(::socket(AF_INET6, SOCK_DGRAM, 0) >= 0);
    if (what == "netlink")
        return outcome(::socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
    if (what == "local")
        return outcome(::socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    if (what == "signal-parent")
        return outcome(::kill(::getppid(), 0) == 0);
    if (what == "signal-all")
        return outcome(::kill(-1, 0) == 0);
    if (what == "signal-self")
        return outcome(::kill(::getpid(), 0) == 0 && ::raise(SIGCONT) == 0);
    if (what == "kill-self")
        return outcome(::kill(::getpid(), SIGKILL) == 0);
    if (what == "trace")
        return outcome(::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr) == 0);
    if (what == "memory")
        return readParent();
    if (what == "limits")
        return limitParent();
    if (what == "session")
        return outcome(::setsid() >= 0 || ::setpgid(0, ::getppid()) == 0);
    if (what == "namespace")
        return outcome(::unshare(CLONE_NEWUSER) == 0);
    if (what == "clock")
        return adjustClock();
    if (what == "bpf")
        return outcome(::syscall(SYS_bpf, 0, nullptr, 0) >= 0 || errno == EINVAL || errno == EFAULT);
    if (what == "uring")
        return outcome(::syscall(SYS_io_uring_setup, 1, nullptr) >= 0 || errno == EFAULT);
    if (what == "name-thread") // as drivers do it
        return outcome(::open(("/proc/self/task/" + std::to_string(::getpid()) + "/comm").c_str(),
                              O_WRONLY | O_CREAT | O_TRUNC, 0666)
                       >= 0);
    if (what == "thread") {
        try {
            return startThread();
        } catch (const std::system_error &refused) {
            errno = refused.code().value();
            return outcome(false);
        }
    }
    if (what == "variable")
        return std::getenv(path) ? 0 : 1;
    return 3;
}
