// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"

#include <filesystem>
#include <string>
#include <vector>

namespace klineage {

/// Workloads that are a part of the program: those of the library with a built-in oracle and one kind of work each.
[[nodiscard]] const std::vector<workload::Workload> &templateWorkloads();

/// Writes a workload of the program into root/workloads, under its own name. Errors: NotFound (there is no such template); Conflict
/// (there is such a workload); Io.
[[nodiscard]] Status addTemplateWorkload(const std::filesystem::path &root, std::string_view name);

/// Whether a workspace can be written there: the folder is missing, empty, or has nothing but hidden files and empty folders workloads and skills.
[[nodiscard]] bool isFreeForWorkspace(const std::filesystem::path &folder);

/// Writes a small workspace that works, workloads/ last: the workload silu with its built-in oracle, its definition as K00 of a lineage
/// for this machine's CPU, not gated yet, an empty library of cards, and a README.md. Errors: Conflict (the folder has something in
/// it); Io.
[[nodiscard]] Status createWorkspace(const std::filesystem::path &folder);

} // namespace klineage
