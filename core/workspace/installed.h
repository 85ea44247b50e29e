// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <optional>
#include <stop_token>

namespace klineage {

/// The example workspace of an installed program: share/klineage/workspace beside the folder of this program. None in a build folder.
[[nodiscard]] std::optional<std::filesystem::path> installedWorkspace();

/// Work cannot be kept there: this process may not write, or it belongs to the installation, which the next version replaces.
[[nodiscard]] bool isReadOnly(const std::filesystem::path &root);

/// Copies workloads, skills, runs, experiments and pool.toml to a folder that is not there yet or is empty, whole or not at all. The
/// copy's files can be written by their owner. Errors: NotFound (`from` is no workspace), InvalidInput (`to` lies in it), Conflict (`to`
/// has something in it), Io, Cancelled.
[[nodiscard]] Status copyWorkspace(const std::filesystem::path &from, const std::filesystem::path &to,
                                   const std::stop_token &stop = {});

} // namespace klineage
