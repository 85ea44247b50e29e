// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"

#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

namespace klineage::gate {

/// Everything a binary depends on.
struct CompileKey {
    std::string source;
    std::map<std::string, std::int64_t> tunables;
    std::string compiler;
    std::string target;
    std::string launches{};                   ///< see CompileRequest
    [[nodiscard]] std::string digest() const; ///< sha-256, hex
};

/// Compiled programs by key, one file each, written atomically. A file that is damaged or of another key is a miss. An empty
/// directory turns the cache off. Old entries are dropped when there are more than 2,000.
class CompileCache
{
public:
    explicit CompileCache(std::filesystem::path directory);

    /// The same cache for a compiler that works ahead: what it stores also waits in memory, a few at most and whether or not there is
    /// a directory, for the first find() of it. Both may be used at the same time, by a thread each.
    [[nodiscard]] CompileCache ahead() const;
    [[nodiscard]] bool worksAhead() const { return m_isAhead; }

    [[nodiscard]] std::optional<CompileOutput> find(const CompileKey &key) const;
    void store(const CompileKey &key,
               const CompileOutput &output) const; ///< failures are ignored: it is only a cache

private:
    struct Waiting {
        std::mutex mutex;
        std::deque<std::pair<std::string, CompileOutput>> outputs; ///< by digest, oldest first
    };
    void dropOld() const;
    [[nodiscard]] std::optional<CompileOutput> takeWaiting(const std::string &digest) const;

    std::filesystem::path m_directory;
    std::shared_ptr<Waiting> m_waiting = std::make_shared<Waiting>();
    bool m_isAhead = false;
};

} // namespace klineage::gate
