// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/poolchoice.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace klineage::cli {

void addPoolOptions(CLI::App &verb, PoolChoice &choice)
{
    verb.add_option("--launcher", choice.launcher,
                    "Start one gate through this command, as in \"ssh HOST\" or \"srun --gres=gpu:1\"");
    verb.add_option("--pool", choice.pool,
                    "Gates that this pool.toml names (default: that of the workspace, else the user's; none: "
                    "this machine's alone)");
}

void addPlaceOptions(CLI::App &verb, gate::Place &place)
{
    verb.add_option("--platform", place.platform, "Only on gates of this platform, as in sm90");
    verb.add_option("--device", place.device, "Only on devices of this name, as in \"NVIDIA H200\"");
    verb.add_option("--gate", place.gate, "Only on this gate of the pool");
}

tl::expected<gate::PoolFile, int> poolOf(const Session &session, const PoolChoice &choice)
{
    const Result<std::filesystem::path> root = session.workspaceRoot();
    Result<gate::PoolFile> pool =
        gate::choosePool(choice.launcher, choice.pool, root ? *root : std::filesystem::path());
    if (pool)
        return std::move(*pool);
    const ErrorCode code = pool.error().code;
    return tl::unexpected(code == ErrorCode::InvalidInput || code == ErrorCode::NotFound
                              ? session.usage(pool.error().message)
                              : session.fail(pool.error()));
}

tl::expected<std::unique_ptr<gate::GatePool>, int> openPool(const Session &session, const PoolChoice &choice)
{
    auto pool = poolOf(session, choice);
    if (!pool)
        return tl::unexpected(pool.error());
    const gate::BoardOptions options = pool->options();
    return std::make_unique<gate::GatePool>(std::move(pool->gates), options);
}

int jobsOf(int said, const gate::GatePool &pool)
{
    return said > 0 ? said : static_cast<int>(std::clamp<std::size_t>(pool.size(), 1, 64));
}

} // namespace klineage::cli
