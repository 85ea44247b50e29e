// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"
#include "core/base/result.h"
#include "core/process/deadline.h"
#include "core/process/isolation.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace klineage::process {

/// How a process ended.
struct ExitStatus {
    int exitCode = 0;            ///< meaningful when signal is 0
    int signal = 0;              ///< the signal that ended it; 0: it exited
    std::uint64_t peakBytes = 0; ///< most memory that it, or a child that it waited for, had at once
    [[nodiscard]] bool ok() const { return signal == 0 && exitCode == 0; }
    /// "exit code 3", "SIGSEGV (invalid memory access)"
    [[nodiscard]] std::string describe() const;
};

struct InheritedFd {
    int parentFd = -1;
    int childFd = -1; ///< 3 or more
};

/// One setrlimit.
struct ResourceLimit {
    int resource = 0; ///< RLIMIT_…
    std::uint64_t value = 0;
    std::uint64_t atFirst = 0; ///< what holds until the parent raises it (raiseLimit()); 0: value
};

struct ChildOptions {
    std::vector<std::string> command; ///< program (looked up on PATH when it has no slash) and arguments
    std::vector<std::pair<std::string, std::string>> environment; ///< added to, or replacing, the parent's
    /// Names ("PATH"), or beginnings of names ("CUDA_*"), of the only variables that it has from the parent; nothing: all.
    std::optional<std::vector<std::string>> inheritedVariables;
    std::filesystem::path workingDirectory;
    std::vector<InheritedFd> inherited; ///< every other descriptor above 2 is closed in the child
    std::vector<ResourceLimit> limits;
    std::optional<Isolation> isolation; ///< nothing: it may do what the parent may
    bool openStdin = false;             ///< otherwise /dev/null
    bool captureStdout = true;          ///< otherwise the parent's
    bool captureStderr = true;
    std::size_t outputCapBytes = std::size_t{1} << 20; ///< per stream; more is read and thrown away
};

/// What a stream produced, cut at the cap.
struct CapturedOutput {
    std::string text;
    std::uint64_t droppedBytes = 0;
};

/// A child in its own process group. Destruction kills the group and reaps the child. The child dies when this process does.
/// Not thread-safe; may be used from any one thread at a time (children are forked by a thread that never ends, because
/// PR_SET_PDEATHSIG fires when the forking *thread* ends).
class ChildProcess
{
public:
    ChildProcess() = default; ///< no child
    [[nodiscard]] static Result<ChildProcess> start(const ChildOptions &options);

    ChildProcess(ChildProcess &&other) noexcept;
    ChildProcess &operator=(ChildProcess &&other) noexcept;
    ~ChildProcess();

    [[nodiscard]] pid_t pid() const { return m_pid; }
    /// Non-blocking write end of the child's stdin; -1 unless openStdin. closeStdin() sends end of file.
    [[nodiscard]] int stdinFd() const { return m_stdin.get(); }
    void closeStdin() { m_stdin.close(); }
    /// Non-blocking read end of stdout, for callers that parse it themselves and then must not drain(); -1 unless captured.
    [[nodiscard]] int stdoutFd() const { return m_stdout.get(); }

    /// Appends the descriptors whose readiness calls for drain(), and one that becomes readable when the child ends.
    void appendPollFds(std::vector<pollfd> &fds) const;
    /// Reads what the captured streams have, without blocking.
    void drain()
    {
        drainStream(m_stdout, m_out);
        drainStderr();
    }
    void drainStderr() { drainStream(m_stderr, m_err); }
    /// Reads what the captured streams have, and forgets all that was read.
    void forgetOutput()
    {
        drain();
        m_out = {};
        m_err = {};
    }
    [[nodiscard]] const CapturedOutput &standardOutput() const { return m_out; }
    [[nodiscard]] const CapturedOutput &standardError() const { return m_err; }

    /// The status when the child has ended. What is left of its group is killed then.
    [[nodiscard]] std::optional<ExitStatus> tryWait();
    /// Waits and drains; ErrorCode::Timeout when the deadline passes first (the child keeps running).
    [[nodiscard]] Result<ExitStatus> wait(Deadline deadline);
    /// Another limit for the running child, up to the value that it was started with.
    [[nodiscard]] Status raiseLimit(const ResourceLimit &limit) const;
    /// Kills the whole group and reaps. Harmless when the child has ended already.
    ExitStatus kill() noexcept;

private:
    void drainStream(FileDescriptor &fd, CapturedOutput &output);

    pid_t m_pid = -1;
    std::optional<ExitStatus> m_status;
    std::size_t m_outputCapBytes = 0;
    FileDescriptor m_pidFd;
    FileDescriptor m_stdin;
    FileDescriptor m_stdout;
    FileDescriptor m_stderr;
    CapturedOutput m_out;
    CapturedOutput m_err;
};

/// A pair of connected, close-on-exec stream sockets: one for this process, one to inherit.
[[nodiscard]] Result<std::pair<FileDescriptor, FileDescriptor>> socketPair();

} // namespace klineage::process
