// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/triton/pythoncompiler.h"

namespace klineage::gate {

/// What of Triton was found, in the Python that pythonInterpreter() starts.
struct TritonVersions {
    std::string triton;    ///< "3.6.0"
    std::string python;    ///< "3.12.3"
    std::string assembler; ///< of CUDA: "12.8"
    /// "triton 3.6.0, ptxas 12.8, Python 3.12.3"
    [[nodiscard]] std::string text() const;
};

/// Candidates in Triton become cubins in two processes. The language's own (resources/python/tritoncompiler.py, which is part of this program)
/// makes PTX; the assembler that comes with the package makes that a cubin, and may read the PTX alone. One thread.
class TritonCompiler : public PythonCompiler
{
public:
    TritonCompiler();

    [[nodiscard]] WorkerResult<std::string> version(const std::stop_token &stop) override;
    [[nodiscard]] WorkerResult<CompileOutput> compile(const CompileRequest &request, double limitSeconds,
                                                      const std::stop_token &stop) override;

    [[nodiscard]] WorkerResult<TritonVersions> versions(const std::stop_token &stop);

private:
    [[nodiscard]] WorkerResult<void> ensureReady(const std::stop_token &stop);

    std::optional<TritonVersions> m_versions;
    std::vector<std::string> m_assembler; ///< the program and the options that this Triton gives it
};

} // namespace klineage::gate
