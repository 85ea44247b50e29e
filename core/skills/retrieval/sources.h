// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/retrieval.h"

#include "core/lineage/lineage.h"
#include "core/workload/workload.h"

namespace klineage::skills {

// What retrieval works with, taken from lineages and workloads.

[[nodiscard]] LineagePath pathOf(const lineage::Lineage &lineage);
[[nodiscard]] std::vector<LineagePath> pathsOf(const std::vector<lineage::Lineage> &lineages);

/// Words of the oracle ("matmul_nt", "matmul", "nt"), dtypes, how many inputs of which rank, whether it reduces.
[[nodiscard]] WorkloadTags tagsOf(const workload::Workload &workload);
[[nodiscard]] std::vector<WorkloadTags> tagsOf(const std::vector<workload::Workload> &workloads);

/// The target that a recorded state is: its lineage's workload, language and platform, the categories of the transitions up to it, and
/// the features that the cards of those transitions provide. nothing when the lineage has no such state.
[[nodiscard]] std::optional<Target> targetAt(const lineage::Lineage &lineage, std::string_view state,
                                             const std::vector<CardRecord> &library);

} // namespace klineage::skills
