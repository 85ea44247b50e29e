// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"
#include "core/base/result.h"

#include <filesystem>

namespace klineage::skills {

/// Holds skills/<name>/.lock (core/base/filelock.h) while it lives.
class CardLock
{
public:
    /// For writers. Waits up to ten seconds for another writer; then ErrorCode::Timeout.
    [[nodiscard]] static Result<CardLock> exclusive(const std::filesystem::path &cardDirectory);
    /// For readers: keeps writers out when it can be had at once or shortly; otherwise holds nothing, and reading is still safe
    /// (a change in flight is then read as "not done yet"). Creates nothing, so a library can be read-only.
    [[nodiscard]] static CardLock shared(const std::filesystem::path &cardDirectory);

private:
    explicit CardLock(FileDescriptor handle)
        : m_handle(std::move(handle))
    {}

    FileDescriptor m_handle;
};

} // namespace klineage::skills
