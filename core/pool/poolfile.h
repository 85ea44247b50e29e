// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gateboard.h"
#include "core/pool/gatespec.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// A pool.toml: the gates that may be asked. Schema in core/pool/README.md.
struct PoolFile {
    std::filesystem::path
        file;         ///< where it was read; empty: there is none, and the one gate is of this machine
    std::string text; ///< of that file
    std::vector<GateSpec> gates;
    double patienceSeconds = 600; ///< how long a trial waits while no gate for it can be reached

    [[nodiscard]] BoardOptions options() const;
};

[[nodiscard]] Result<PoolFile> parsePoolFile(std::string_view text, const std::string &fileName);
[[nodiscard]] Result<PoolFile> readPoolFile(const std::filesystem::path &file);

/// The user's own: pool.toml in $XDG_CONFIG_HOME/klineage or ~/.config/klineage.
[[nodiscard]] std::filesystem::path ownPoolFile();
/// That of the workspace, else the user's, else this machine's one gate.
[[nodiscard]] Result<PoolFile> findPool(const std::filesystem::path &workspace);

/// The one gate that these words start, as in "ssh HOST" or "srun --gres=gpu:1".
[[nodiscard]] Result<PoolFile> poolOfLauncher(const std::string &launcher);

/// What a person chose: the words of a launcher, or the file of a pool ("none": this machine's gate), or nothing.
[[nodiscard]] Result<PoolFile> choosePool(const std::string &launcher, const std::string &pool,
                                          const std::filesystem::path &workspace);

} // namespace klineage::gate
