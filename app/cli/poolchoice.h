// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/session.h"

#include "core/pool/gatepool.h"
#include "core/pool/poolfile.h"

#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace klineage::cli {

/// Which gates a verb asks: --launcher and --pool.
struct PoolChoice {
    std::string launcher;
    std::string pool;
};
void addPoolOptions(CLI::App &verb, PoolChoice &choice);
/// --platform, --device and --gate: which of them.
void addPlaceOptions(CLI::App &verb, gate::Place &place);

/// What was chosen; else that of the workspace, of the user, or this machine's gate. The exit status, after saying why, when it cannot
/// be read.
[[nodiscard]] tl::expected<gate::PoolFile, int> poolOf(const Session &session, const PoolChoice &choice);
/// The gates of it, none started yet.
[[nodiscard]] tl::expected<std::unique_ptr<gate::GatePool>, int> openPool(const Session &session,
                                                                          const PoolChoice &choice);
/// Said by the user, or else one a gate.
[[nodiscard]] int jobsOf(int said, const gate::GatePool &pool);

} // namespace klineage::cli
