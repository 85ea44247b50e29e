// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"

#include <chrono>
#include <functional>
#include <stop_token>

namespace klineage {

enum class LockKind { Shared, Exclusive };

enum class LockOutcome {
    Had,     ///< until the descriptor is closed
    Busy,    ///< somebody kept it for longer than the patience
    Stopped, ///< a stop was requested
    Refused, ///< this file cannot be locked; errno says why
};

/// How long is waited for a lock that somebody else has.
struct LockWait {
    std::chrono::duration<double> patience{0}; ///< 0: asked for once
    std::chrono::milliseconds pause{5};        ///< between two tries
    std::stop_token stop{};
    std::function<void()> waiting{}; ///< called before the first pause, and every ten seconds
};

/// Takes the advisory lock (flock) of an open file. The system lets go of it when the process dies, however it dies.
[[nodiscard]] LockOutcome lockDescriptor(const FileDescriptor &file, LockKind kind,
                                         const LockWait &wait = {});
/// The same, waiting for as long as it takes: Had or Refused.
[[nodiscard]] LockOutcome lockDescriptorForever(const FileDescriptor &file, LockKind kind);

} // namespace klineage
