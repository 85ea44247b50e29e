// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/triton/pythoncompiler.h"

namespace klineage::gate {

/// What of TileLang was found, in the Python that pythonInterpreter() starts.
struct TilelangVersions {
    std::string tilelang; ///< "0.1.15"
    std::string python;   ///< "3.12.3"
    /// "tilelang 0.1.15, Python 3.12.3"
    [[nodiscard]] std::string text() const;
};

/// Candidates in TileLang become cubins in two processes. The language's own (resources/python/tilelangcompiler.py, which is part of this program)
/// writes CUDA C++, with the texts of the package's headers that this includes; another one compiles that like a candidate in CUDA, where no
/// header of the package can be opened: those texts alone are there, by name. One thread.
class TilelangCompiler : public PythonCompiler
{
public:
    /// cuda: compiles CUDA C++, and outlives this; nullptr where only versions() is asked for.
    explicit TilelangCompiler(LanguageProcess *cuda = nullptr);

    /// "tilelang 0.1.15, Python 3.12.3, nvrtc 13.0"
    [[nodiscard]] WorkerResult<std::string> version(const std::stop_token &stop) override;
    [[nodiscard]] WorkerResult<CompileOutput> compile(const CompileRequest &request, double limitSeconds,
                                                      const std::stop_token &stop) override;

    [[nodiscard]] WorkerResult<TilelangVersions> versions(const std::stop_token &stop);

private:
    LanguageProcess *m_cuda;
};

} // namespace klineage::gate
