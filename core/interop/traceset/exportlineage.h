// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/traceset/datasetdefinition.h"
#include "core/lineage/lineage.h"

namespace klineage::interop {

struct DatasetOptions {
    std::string author = "klineage"; ///< of the solutions, and a folder: isDatasetAuthor()
};

/// A lineage as a data set of FlashInfer Trace.
struct LineageDataset {
    std::string definition; ///< its name
    std::size_t workloads = 0;
    std::size_t solutions = 0;
    std::size_t traces = 0;
    std::vector<DatasetFile> files; ///< the definition first
    std::vector<std::string> lost;  ///< what of this lineage the format cannot say, whole sentences
};

/// 1 to 64 letters, digits, '.', '-' or '_', not beginning with a '.'.
[[nodiscard]] bool isDatasetAuthor(std::string_view text);

/// The workload as a definition with its fixed shapes; a solution for each text that has trials or is a state or an attempt; a trace for
/// each trial that the format can carry. The same each time. Reads the candidates. Error: the workload cannot be a definition.
[[nodiscard]] Result<LineageDataset> datasetOf(const lineage::Lineage &lineage,
                                               const workload::Workload &workload,
                                               const DatasetOptions &options = {});

/// Writes it below the folder, which is made where there is none; solutions and traces of an earlier export of this lineage are replaced.
/// Errors: Conflict when another definition has its place; Io.
[[nodiscard]] Status writeDataset(const LineageDataset &dataset, const std::filesystem::path &folder);

/// What the format cannot say of any lineage, whole sentences.
[[nodiscard]] std::vector<std::string> datasetLimits();

} // namespace klineage::interop
