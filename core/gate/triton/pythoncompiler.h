// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/interpreter.h"
#include "core/gate/session/languageprocess.h"
#include "core/process/framepipe.h"

#include <nlohmann/json.hpp>

namespace klineage::gate {

/// A kernel language that is a package of Python's.
struct PythonLanguage {
    std::string name;                                               ///< "Triton"
    std::string package;                                            ///< "triton", as it is installed
    const char *script;                                             ///< of resources/python
    std::vector<std::pair<std::string, std::string>> environment{}; ///< beside the sandbox's
};

/// The process of such a language, which sees no device: a python3 that has the package reads a candidate and lowers it. It may read its interpreter
/// and the system's libraries and nothing else, starts no programs, and serves one candidate: what one did to it meets no other. The next one starts
/// meanwhile, so that its imports are waited for once. What it says is believed in nothing but what the kernels do: a verdict is of the cubin. One
/// thread.
class PythonCompiler : public LanguageProcess
{
public:
    explicit PythonCompiler(PythonLanguage language);
    ~PythonCompiler() override;

protected:
    using Json = nlohmann::json;

    /// What the process says of itself, once it did. FailureKind::Unavailable where there is no such package, with how to get it.
    [[nodiscard]] WorkerResult<Json> introduction(const std::stop_token &stop);
    /// The answer to a request; the process is gone afterwards. Behind introduction().
    [[nodiscard]] WorkerResult<Json> ask(const Json &message, process::Deadline deadline,
                                         const std::stop_token &stop);
    /// Ends the process: "Cannot compile Triton: (why) Install …".
    [[nodiscard]] tl::unexpected<WorkerFailure> missing(const std::string &why);
    [[nodiscard]] tl::unexpected<WorkerFailure> badAnswer() const;

    /// "" where it is no text.
    [[nodiscard]] static std::string textAt(const Json &message, const char *key);
    /// One a launch of the plan, under the names that they were asked for. Throws where the reply is no such thing.
    [[nodiscard]] static std::vector<CompiledLaunch> launchesOf(const Json &reply, const Json &asked);

private:
    struct Process;
    [[nodiscard]] WorkerResult<void> launch();
    [[nodiscard]] tl::unexpected<WorkerFailure> end(const Error &error, double limitSeconds);

    PythonLanguage m_language;
    std::optional<Interpreter> m_interpreter;
    std::unique_ptr<Process> m_process;
    Json m_hello;
};

} // namespace klineage::gate
