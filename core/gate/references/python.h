// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/caseinstance.h"
#include "core/gate/session/workersession.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace klineage::gate {

/// The providers that are Python packages, in the order in which they are listed.
inline constexpr std::array pythonProviders{"torch", "flashinfer", "fla", "flash_qla", "fa3"};

[[nodiscard]] bool isPythonProvider(const std::string &provider);

/// How long a package may take to be imported; the first one may have a device made ready, too.
inline constexpr double packageStartSeconds = 120;
/// How long each step of making a reference ready may take: uploads; packages compile and try out kernels.
inline constexpr double packagePrepareSeconds = 300;

/// A python3 process that has imported a provider's package, and the conversation with it (resources/python/references.py, which is
/// part of this program). It has a device context and buffers of its own, so it shares nothing with the candidate. KLINEAGE_PYTHON
/// names another interpreter. After any failure but a refusal the process is killed, and every later call fails the same way.
class PythonSession
{
public:
    [[nodiscard]] static WorkerResult<std::unique_ptr<PythonSession>> start(const std::string &provider,
                                                                            double limitSeconds,
                                                                            const std::stop_token &stop);

    [[nodiscard]] bool alive() const { return !m_failure; }
    [[nodiscard]] const std::string &version() const { return m_version; }
    /// The version; where the package computes the subject in several ways, with the one that was the fastest here.
    [[nodiscard]] std::string version(int subject) const;
    [[nodiscard]] pid_t pid() const { return m_child.pid(); }

    /// Uploads the inputs once for each of `sets` buffer sets; what was there before is dropped.
    [[nodiscard]] WorkerResult<void> begin(CaseInstancePtr instance, std::size_t sets, std::stop_token stop);
    /// The subject's number. FailureKind::Unavailable when the package cannot do it.
    [[nodiscard]] WorkerResult<int> add(const ReferenceCall &call);
    /// Runs it on the instance's inputs and compares every output with the oracle: why it is wrong, or nothing.
    [[nodiscard]] WorkerResult<std::optional<std::string>> check(int subject);
    [[nodiscard]] WorkerResult<TimedSample> time(int subject, const TimedRun &run, double limitSeconds);
    /// Frees the device memory; the process stays warm.
    void end();

private:
    [[nodiscard]] WorkerResult<nlohmann::json> ask(const nlohmann::json &request, double limitSeconds);
    [[nodiscard]] tl::unexpected<WorkerFailure> failed(FailureKind kind, Error error);
    [[nodiscard]] std::string words();

    std::string m_provider;
    std::string m_version;
    process::ChildProcess m_child;
    process::FramePipe m_pipe;
    process::SharedMemory m_memory;
    std::stop_token m_stop;
    std::optional<WorkerFailure> m_failure;
    CaseInstancePtr m_instance;
    std::map<std::string, std::size_t> m_offsets; ///< of the outputs in the memory
    std::map<int, std::string> m_ways;            ///< of the subjects that have several
};

/// The processes of a supervisor, one a provider, started when they are first wanted.
class PythonSessions
{
public:
    [[nodiscard]] WorkerResult<PythonSession *> session(const std::string &provider, double limitSeconds,
                                                        const std::stop_token &stop);
    void end(); ///< of a trial

private:
    std::map<std::string, std::unique_ptr<PythonSession>> m_sessions;
};

/// What is installed, as `klineage-cli doctor` shows it: provider -> version. Nothing is imported.
[[nodiscard]] Result<std::map<std::string, std::string>> installedPythonReferences();

} // namespace klineage::gate
