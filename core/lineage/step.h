// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <optional>

namespace klineage::lineage {

/// One row of a lineage (a state, an attempt or a branch), whatever its kind.
struct RowRef {
    std::string id; ///< "K03", "R03a", "trial:<id>"
    std::string title;
    std::string parent;                 ///< state id; empty for K0
    std::filesystem::path file;         ///< absolute
    const gate::Trial *trial = nullptr; ///< owned by the Lineage
};

/// nothing when the lineage has no such row.
[[nodiscard]] std::optional<RowRef> findRow(const Lineage &lineage, std::string_view id);

/// What is compared when a row is looked at: it stands on the right, its parent (or a pinned baseline) on the left.
struct Step {
    std::optional<RowRef>
        left; ///< empty for K0 without a baseline, and for a row that is the baseline itself
    RowRef right;
};
[[nodiscard]] std::optional<Step> findStep(const Lineage &lineage, std::string_view row,
                                           std::string_view baseline = {});

} // namespace klineage::lineage
