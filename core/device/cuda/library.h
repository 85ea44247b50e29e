// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <string>
#include <utility>
#include <vector>

namespace klineage::gate::cuda {

/// A shared library opened at run time. It is never closed: driver libraries keep threads and exit handlers.
class Library
{
public:
    /// Tries the names in order, each first as the loader finds it, then in the CUDA folders (CUDA_PATH, /usr/local/cuda).
    /// `package` says in the error what provides it.
    [[nodiscard]] static Result<Library> open(const std::vector<std::string> &names,
                                              const std::string &package);

    template <typename Function>
    [[nodiscard]] bool resolve(Function &function, const char *symbol) const
    {
        function = reinterpret_cast<Function>(find(symbol));
        return function != nullptr;
    }
    [[nodiscard]] const std::string &name() const { return m_name; }

private:
    [[nodiscard]] void *find(const char *symbol) const;

    void *m_handle = nullptr;
    std::string m_name;
};

/// Folders that hold the CUDA headers (with trailing "include"), most specific first; only existing ones.
[[nodiscard]] std::vector<std::string> includeFolders();

} // namespace klineage::gate::cuda
