// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/skills/card.h"
#include "core/workload/workload.h"

#include <filesystem>
#include <string>
#include <vector>

namespace klineage {

/// A folder with workloads/ and skills/ (and runs/). Value snapshot; copying is deep.
struct Workspace {
    std::filesystem::path root;
    std::vector<workload::Workload> workloads; ///< by name
    std::vector<lineage::Lineage> lineages;    ///< by key
    std::vector<skills::CardRecord> cards;     ///< by name
    std::vector<Error> problems;               ///< what could not be read; the rest is still there

    [[nodiscard]] const workload::Workload *findWorkload(std::string_view name) const;
    [[nodiscard]] const lineage::Lineage *findLineage(std::string_view key) const; ///< "gemm/sm90"
    [[nodiscard]] const skills::CardRecord *findCard(std::string_view name) const;
    [[nodiscard]] const gate::Trial *findTrial(std::string_view id) const; ///< of any lineage

    /// All of them, for messages about a name that is none.
    [[nodiscard]] std::vector<std::string> workloadNames() const;
    [[nodiscard]] std::vector<std::string> lineageKeys() const;
    [[nodiscard]] std::vector<std::string> cardNames() const;
};

/// Reads everything; fails only when root is no workspace. 50 lineages and 200 cards take well under 100 ms.
[[nodiscard]] Result<Workspace> openWorkspace(const std::filesystem::path &root);
/// The nearest folder at or above start that holds workloads/ and skills/.
[[nodiscard]] Result<std::filesystem::path> findWorkspace(const std::filesystem::path &start);

} // namespace klineage
