// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/compilersession.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace klineage::gate {

/// Compiles CUDA candidates before their turn, while another one is measured. One background thread, and one compiler process beside
/// the one that serves the trial in flight, under the same limits and in the same sandbox: what is timed is timed by the device, and
/// one busy core of the host is all that the measurement can notice. Nothing of the kind is done where the CPU is the
/// device. What it makes is found in the compile cache; a candidate that does not compile gets its verdict in its own trial. Thread-safe.
class CompileAhead
{
public:
    /// cache: see CompileCache::ahead().
    CompileAhead(std::vector<std::string> command, CompileCache cache);
    ~CompileAhead(); ///< kills what is being compiled
    CompileAhead(const CompileAhead &) = delete;
    CompileAhead &operator=(const CompileAhead &) = delete;

    struct Job {
        std::string language;
        std::string source;
        std::string name;
        std::map<std::string, std::int64_t> tunables;
        [[nodiscard]] bool compiles(const std::string &otherSource,
                                    const std::map<std::string, std::int64_t> &otherTunables) const
        {
            return source == otherSource && tunables == otherTunables;
        }
    };
    /// Does not block. At most `mostWaiting` wait; the oldest give way.
    void add(Job job);
    /// Nothing is compiled before the target is known.
    void setTarget(const std::string &target);
    /// Before the trial of this source compiles it: takes it out of the queue, or, when it is being compiled just now, waits for that.
    void await(const std::string &source, const std::map<std::string, std::int64_t> &tunables, double seconds,
               const std::stop_token &stop);

    static constexpr std::size_t mostWaiting = 2;

private:
    void work(const std::stop_token &stop);

    CompilerSession m_compiler; ///< the thread's alone
    std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::deque<Job> m_waiting;
    std::optional<Job> m_current;
    std::string m_target;
    bool m_off = false;    ///< there is no compiler on this machine
    std::jthread m_thread; ///< started with the first job; last: it uses everything above
};

} // namespace klineage::gate
