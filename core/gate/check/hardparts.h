// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/selections.h"
#include "core/workload/workload.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// What draws between contents of one seed; inputs take the streams from 0 up, and shapes the last one.
inline constexpr std::uint64_t scaleStream = ~std::uint64_t{1};

/// The tensor that plays this role in the oracle; nullptr: none.
[[nodiscard]] const workload::Tensor *tensorOf(const workload::Workload &workload, const std::string &role);

/// Some input of the case is filled so.
[[nodiscard]] bool hasKind(const workload::Workload &workload, const workload::Case &c,
                           workload::DistributionKind kind);

/// Its results are sums of products of two operands.
[[nodiscard]] bool isProduct(const workload::Workload &workload);

/// Terms of one result of the case's: as the tolerance counts them, or by the shape of an operand; nothing where neither says it.
[[nodiscard]] std::optional<double> termsOfSum(const workload::Workload &workload, const workload::Case &c);

/// What limits and contents are set for; of more, errors of one sign add up.
inline constexpr double usualTerms = 8192;

/// Cases whose inputs are filled otherwise than the timed one's, offsets aside.
[[nodiscard]] std::vector<const workload::Case *> hardCases(const workload::Workload &workload);

/// "timed (as large, masked)"
void nameAfter(workload::Case &content, const std::vector<const workload::Case *> &cases);

template <typename List>
bool contains(const List &list, std::string_view word)
{
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// The timed shape with what this case is filled with; offsets are as they are timed.
[[nodiscard]] workload::Case atTimedShape(const workload::Workload &workload, const workload::Case &c);

/// Holds powers of two far beyond those of half precision.
[[nodiscard]] bool holdsManyScales(kernel::DType dtype);

/// The two whose products are added up, and whether the sum runs down the second.
struct Operands {
    const workload::Tensor *first = nullptr;
    const workload::Tensor *second = nullptr;
    bool sumsDown = false;
    std::int64_t terms = 0; ///< of a window's pixel, which come again for each; 0: of the whole sum

    [[nodiscard]] bool has(const workload::Tensor &tensor) const
    {
        return &tensor == first || &tensor == second;
    }
};
[[nodiscard]] std::optional<Operands> operandsOf(const workload::Workload &workload);

// By how many octaves an operand is scaled: beyond what half precision has (of terms: of which it has few bits).
inline constexpr int fewestOctaves = 17;
inline constexpr int mostOctaves = 24;

/// One operand times a power of two, the other divided by it; 1 where a tensor's type holds few of them.
[[nodiscard]] double factorOf(const workload::Workload &workload, const workload::Tensor &tensor,
                              std::uint64_t seed, bool other = false);

/// Whole numbers at the timed shape: as large as they can be for sums to be exact, and as exact cases of products have them.
[[nodiscard]] std::vector<workload::Case> hardIntegers(const workload::Workload &workload,
                                                       std::uint64_t seed);

/// hardContents() of products and convolutions.
[[nodiscard]] std::vector<workload::Case> hardProducts(const workload::Workload &workload,
                                                       std::uint64_t seed);

/// Of a tensor whose rows are heads.
[[nodiscard]] bool hasOneHead(const workload::Workload &workload, const workload::Tensor &tensor);

/// hardContents() of the delta rule.
[[nodiscard]] std::vector<workload::Case> hardRecurrences(const workload::Workload &workload,
                                                          std::uint64_t seed);

} // namespace klineage::gate
