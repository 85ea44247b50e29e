// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/caseinstance.h"

#include "core/gate/check/hardcontent.h"
#include "core/gate/check/hardparts.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace klineage::gate {

namespace {

/// How far off a product's results may be before they are rounded to their type, of contents whose sums are as large as what is added up. On an H200,
/// sums in single precision, in tensor cores too, are off by 2^-16 of them at most and mostly by 2^-20; sums of as few as two or
/// sixteen products in half precision by 2^-13.2 to 2^-11.5, wherever they are taken and whatever a guard would look for elsewhere. 0 where that
/// says nothing: operands whose products are rounded themselves.
double limitBeforeRounding(const workload::Workload &workload, const workload::Case &c)
{
    constexpr double limit = 0x1p-15;
    constexpr std::array products{"matmul_nn", "matmul_nt", "matmul_grouped_nn", "conv2d_nhwc"};
    const bool isUsual = !c.exact
                         && std::all_of(c.distributions.begin(), c.distributions.end(),
                                        [](const auto &entry) { return entry.second.termOctaves != 0; });
    if (!isUsual || std::none_of(products.begin(), products.end(), [&](const char *name) {
            return workload.oracle == name;
        }))
        return 0;
    const bool fits =
        std::all_of(workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
            const auto &d = workload.distributionOf(tensor, c);
            const bool isNarrow = tensor.dtype == kernel::DType::F16 || tensor.dtype == kernel::DType::BF16;
            return tensor.role == workload::Role::Output ? kernel::isFloat(tensor.dtype)
                   : d.kind == workload::DistributionKind::Offsets
                       ? true
                       : d.kind == workload::DistributionKind::Normal
                             && (isNarrow || tensor.shape.size() == 1);
        });
    return fits ? limit * std::sqrt(c.stretch) : 0;
}

} // namespace

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
    instance->tolerance.beforeRounding = limitBeforeRounding(workload, c);
    auto expected = source(workload, c, instance->tensors, instance->tolerance);
    if (!expected)
        return tl::unexpected(expected.error());
    instance->expected = std::move(*expected);
    widenTolerance(workload, c, *instance);
    instance->selection = selectionOf(workload);
    return CaseInstancePtr(std::move(instance));
}

} // namespace klineage::gate
