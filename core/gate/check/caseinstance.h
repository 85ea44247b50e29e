// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/expected.h"
#include "core/gate/check/selection.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace klineage::gate {

/// A case (without drawn axes) with the content that one seed gives it. Lives in the supervisor only; immutable.
struct CaseInstance {
    std::uint64_t seed = 0;
    std::vector<HostTensor> tensors; ///< inputs filled, outputs without bytes
    ExpectedOutputs expected;
    std::optional<Selection> selection; ///< the outputs that it names are compared as choices
    workload::Tolerance tolerance;
};
using CaseInstancePtr = std::shared_ptr<const CaseInstance>;

/// Computes what a case's outputs have to be.
using ExpectedSource =
    std::function<Result<ExpectedOutputs>(const workload::Workload &, const workload::Case &,
                                          const std::vector<HostTensor> &, const workload::Tolerance &)>;

/// Expected values in double, as they are compared.
[[nodiscard]] inline ExpectedOutputs expectedOf(Expected computed)
{
    ExpectedOutputs expected;
    for (auto &[name, values] : computed)
        expected[name] = std::move(values);
    return expected;
}

/// The CPU does.
[[nodiscard]] inline Result<ExpectedOutputs> expectedOnCpu(const workload::Workload &workload,
                                                           const workload::Case &,
                                                           const std::vector<HostTensor> &tensors,
                                                           const workload::Tolerance &)
{
    auto computed = computeOracle(workload, tensors);
    if (!computed)
        return tl::unexpected(computed.error());
    return expectedOf(std::move(*computed));
}

/// A case with the content of a seed. The tolerance is the workload's, wider where the content asks for it (hardcontent.h).
[[nodiscard]] Result<CaseInstancePtr> makeInstance(const workload::Workload &workload,
                                                   const workload::Case &c, std::uint64_t seed,
                                                   const ExpectedSource &source = expectedOnCpu);

} // namespace klineage::gate
