// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/interpreter.h"
#include "core/gate/session/languageprocess.h"
#include "core/process/framepipe.h"

namespace klineage::gate {

/// What of Triton was found, in the Python that pythonInterpreter() starts.
struct TritonVersions {
    std::string triton;    ///< "3.6.0"
    std::string python;    ///< "3.12.3"
    std::string assembler; ///< of CUDA: "12.8"
    /// "triton 3.6.0, ptxas 12.8, Python 3.12.3"
    [[nodiscard]] std::string text() const;
};

/// Candidates in Triton become cubins in two processes, neither of which sees a device. A python3 that has the package triton reads the
/// source and lowers it to PTX (resources/python/tritoncompiler.py, which is part of this program); the assembler that comes with the package
/// makes that a cubin. The first may read its interpreter and the system's libraries and nothing else, starts no programs, and serves
/// one candidate: what one did to it meets no other. The next one starts meanwhile, so that its imports are waited for once. The assembler may
/// read the PTX alone. What both say is believed in nothing but what the kernels do: a verdict is of the cubin. One thread.
class TritonCompiler : public LanguageProcess
{
public:
    TritonCompiler();
    ~TritonCompiler() override;

    [[nodiscard]] WorkerResult<std::string> version(const std::stop_token &stop) override;
    [[nodiscard]] WorkerResult<CompileOutput> compile(const CompileRequest &request, double limitSeconds,
                                                      const std::stop_token &stop) override;

    [[nodiscard]] WorkerResult<TritonVersions> versions(const std::stop_token &stop);

private:
    struct Process;
    [[nodiscard]] WorkerResult<void> launch();
    /// Waits for what the process says of itself.
    [[nodiscard]] WorkerResult<void> ensureReady(const std::stop_token &stop);
    [[nodiscard]] tl::unexpected<WorkerFailure> end(const Error &error, double limitSeconds);
    [[nodiscard]] WorkerResult<nlohmann::json> ask(const CompileRequest &request, double limitSeconds,
                                                   const std::stop_token &stop);

    std::optional<Interpreter> m_interpreter;
    std::optional<TritonVersions> m_versions;
    std::vector<std::string> m_assembler; ///< the program and the options that this Triton gives it
    std::unique_ptr<Process> m_process;
};

} // namespace klineage::gate
