// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace klineage::gate {

/// What draws between contents of one seed; inputs take the streams from 0 up, and shapes the last one.
inline constexpr std::uint64_t scaleStream = ~std::uint64_t{1};

/// The tensor that plays this role in the oracle; nullptr: none.
[[nodiscard]] const workload::Tensor *tensorOf(const workload::Workload &workload, const std::string &role);

/// Some input of the case is filled so.
[[nodiscard]] bool hasKind(const workload::Workload &workload, const workload::Case &c,
                           workload::DistributionKind kind);

/// Terms of one result of the case's: as the tolerance counts them, or by the shape of an operand; nothing where neither says it.
[[nodiscard]] std::optional<double> termsOfSum(const workload::Workload &workload, const workload::Case &c);

/// What limits and contents are set for; of more, errors of one sign add up.
inline constexpr double usualTerms = 8192;

/// Cases whose inputs are filled otherwise than the timed one's, offsets aside.
[[nodiscard]] std::vector<const workload::Case *> hardCases(const workload::Workload &workload);

/// "timed (as large, masked)"
void nameAfter(workload::Case &content, const std::vector<const workload::Case *> &cases);

/// Holds powers of two far beyond those of half precision.
[[nodiscard]] bool holdsManyScales(kernel::DType dtype);

/// hardContents() of products and convolutions.
[[nodiscard]] std::vector<workload::Case> hardProducts(const workload::Workload &workload,
                                                       std::uint64_t seed);

/// hardContents() of the delta rule.
[[nodiscard]] std::vector<workload::Case> hardRecurrences(const workload::Workload &workload,
                                                          std::uint64_t seed);

} // namespace klineage::gate
