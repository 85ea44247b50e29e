// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/trial/request.h"
#include "core/trial/trial.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace klineage::gate {

/// A line of the in file of a batch: {"id", "workload": FOLDER, "candidate": FILE, "parent": FILE, "name", settings…}.
struct BatchItem {
    std::string id;
    std::filesystem::path workload;
    std::filesystem::path candidate;
    std::filesystem::path parent;
    GateRequest request; ///< without texts, until readTexts()
};

/// InvalidInput with the place of the first bad line, or of an id that is used twice.
[[nodiscard]] Result<std::vector<BatchItem>> readBatch(const std::filesystem::path &in,
                                                       const GateRequest &defaults);
/// Ids that have a trial in the out file already.
[[nodiscard]] Result<std::set<std::string>> finishedOfBatch(const std::filesystem::path &out);
/// The texts of candidate and parent, and the workload's folder, into the request.
[[nodiscard]] Status readTexts(BatchItem &item);
/// {"id", "trial"} or {"id", "error"}, synced.
[[nodiscard]] Status appendToBatch(const std::filesystem::path &out, const std::string &id,
                                   const Result<Trial> &trial);
/// "gemm-K03: correct. …", for people.
[[nodiscard]] std::string batchReport(const std::string &id, const Result<Trial> &trial);

} // namespace klineage::gate
