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

/// What the target's capability and conditions are held against: tags, families, types of inputs, and as values the axes of the timed
/// case, input_pitch_bytes and output_pitch_bytes (of the rows of tensors of rank 2 or more; the greatest common divisor of several),
/// row_elements (of the first output), input_elements, output_elements, flops, bytes and flops_per_byte.
void describe(Target &target, const workload::Workload &workload);
/// Its identifiers, which anchors name.
void describeCode(Target &target, std::string_view code);
/// What the code shows of the library's features, and what these build on: features, and the categories of the cards that provide them,
/// where the target does not have them yet. So a candidate file is as good a target as a state. Cards of other families than the
/// operator's (describe() it first) show nothing.
void describeFeatures(Target &target, std::string_view code, const std::vector<CardRecord> &library);
/// Its metrics, by their names; of several kernels the largest.
void describeTrial(Target &target, const gate::Trial &trial);

/// The target that a recorded state is: its lineage's workload, language and platform, the categories of the transitions up to it, and
/// the features that the cards of those transitions provide, with its code's identifiers and its trial's metrics. Nothing when the lineage has no such state.
[[nodiscard]] std::optional<Target> targetAt(const lineage::Lineage &lineage, std::string_view state,
                                             const std::vector<CardRecord> &library);

} // namespace klineage::skills
