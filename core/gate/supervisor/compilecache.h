// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/backend.h"

#include <filesystem>
#include <optional>

namespace klineage::gate {

/// Everything a binary depends on.
struct CompileKey {
    std::string source;
    std::map<std::string, std::int64_t> tunables;
    std::string compiler;
    std::string target;
    [[nodiscard]] std::string digest() const; ///< sha-256, hex
};

/// Compiled programs by key, one file each, written atomically. A file that is damaged or of another key is a miss. An empty
/// directory turns the cache off. Old entries are dropped when there are more than 2,000.
class CompileCache
{
public:
    explicit CompileCache(std::filesystem::path directory);

    [[nodiscard]] std::optional<CompileOutput> find(const CompileKey &key) const;
    void store(const CompileKey &key,
               const CompileOutput &output) const; ///< failures are ignored: it is only a cache

private:
    void dropOld() const;
    std::filesystem::path m_directory;
};

} // namespace klineage::gate
