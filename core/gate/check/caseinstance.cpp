// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/caseinstance.h"

#include "core/gate/check/hardcontent.h"

namespace klineage::gate {

Result<CaseInstancePtr> makeInstance(const workload::Workload &workload, const workload::Case &c,
                                     std::uint64_t seed, const ExpectedSource &source)
{
    auto instance = std::make_shared<CaseInstance>();
    instance->seed = seed;
    auto tensors = generateCase(workload, c, seed);
    if (!tensors)
        return tl::unexpected(tensors.error());
    instance->tensors = std::move(*tensors);
    const auto tolerance = workload.toleranceFor(c);
    if (!tolerance)
        return tl::unexpected(tolerance.error());
    instance->tolerance = *tolerance;
    auto expected = source(workload, c, instance->tensors, instance->tolerance);
    if (!expected)
        return tl::unexpected(expected.error());
    instance->expected = std::move(*expected);
    widenTolerance(workload, c, *instance);
    instance->selection = selectionOf(workload);
    return CaseInstancePtr(std::move(instance));
}

} // namespace klineage::gate
