// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/selection.h"

#include <cstdint>
#include <memory>

namespace klineage::gate {

/// A case (without drawn axes) with the content that one seed gives it. Lives in the supervisor only; immutable.
struct CaseInstance {
    std::uint64_t seed = 0;
    std::vector<HostTensor> tensors; ///< inputs filled, outputs without bytes
    Expected expected;
    std::optional<Selection> selection; ///< the outputs that it names are compared as choices
    workload::Tolerance tolerance;
};
using CaseInstancePtr = std::shared_ptr<const CaseInstance>;

[[nodiscard]] inline Result<CaseInstancePtr> makeInstance(const workload::Workload &workload,
                                                          const workload::Case &c, std::uint64_t seed)
{
    auto instance = std::make_shared<CaseInstance>();
    instance->seed = seed;
    auto tensors = generateCase(workload, c, seed);
    if (!tensors)
        return tl::unexpected(tensors.error());
    instance->tensors = std::move(*tensors);
    auto expected = computeOracle(workload, instance->tensors);
    if (!expected)
        return tl::unexpected(expected.error());
    instance->expected = std::move(*expected);
    instance->selection = selectionOf(workload);
    const auto tolerance = workload.toleranceFor(c);
    if (!tolerance)
        return tl::unexpected(tolerance.error());
    instance->tolerance = *tolerance;
    return CaseInstancePtr(std::move(instance));
}

} // namespace klineage::gate
