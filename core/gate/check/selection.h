// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/comparison.h"
#include "core/gate/check/oracle.h"
#include "core/gate/check/roles.h"

#include <optional>

namespace klineage::gate {

/// The tensors of an oracle whose result is a choice of elements, the k largest of each row: "topk_rows" in any order,
/// "topk_sorted_rows" in descending order.
///   in        [rows…, columns]
///   values    [rows…, k], k < columns: the chosen elements
///   indices   [rows…, k], whole numbers: their columns; may be left out, else declared after values
/// Which of equal elements are chosen is free.
struct Selection {
    std::string in;
    std::string values;
    std::string indices; ///< empty: left out
    bool sorted = false; ///< the order counts
};

/// Nothing when the workload's oracle is another one.
[[nodiscard]] std::optional<Selection> selectionOf(const workload::Workload &workload);

/// The expected values of each row, descending (NaN last), and for the indices those of the smallest columns.
[[nodiscard]] Result<Expected> topkOracle(OracleRoles roles);

/// compareOutput with each row of `out` brought into the order of `expected` first; the first mismatch is told where it lies in `out`.
[[nodiscard]] OutputCheck compareSelectedValues(std::span<const std::byte> out, kernel::DType dtype,
                                                std::size_t rowLength, std::span<const double> expected,
                                                const workload::Tolerance &tolerance,
                                                PoisonImage poison = {});

/// What indices are judged by: the values that they were reported with, and the input.
struct SelectedFrom {
    const HostTensor &in;
    std::span<const std::byte> values;
    kernel::DType valueType = kernel::DType::F32;
    std::span<const double> expected; ///< values
};

/// Every index is a column, no column is named twice in a row, and the input there is the value at the same place, within the tolerance.
[[nodiscard]] OutputCheck compareSelectedIndices(std::span<const std::byte> out, kernel::DType dtype,
                                                 std::size_t rowLength, const SelectedFrom &from,
                                                 const workload::Tolerance &tolerance,
                                                 PoisonImage poison = {});

} // namespace klineage::gate
