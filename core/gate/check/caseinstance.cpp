// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/caseinstance.h"

#include "core/gate/check/hardcontent.h"
#include "core/gate/check/hardparts.h"
#include "core/gate/check/precision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace klineage::gate {

namespace {

/// Whether sums of products of such elements are about as large as what is added up, or larger.
bool isUsual(const workload::Distribution &d)
{
    using enum workload::DistributionKind;
    constexpr std::array usual{Normal, Uniform, Large, Sigmoid, UnitRows, Integers, Bits};
    if (std::find(usual.begin(), usual.end(), d.kind) == usual.end())
        return false;
    return isPlain(d) && d.lift == 0 && d.lastHead == 1;
}

/// How far off a product's results may be before they are rounded to their type, of contents whose sums are as large as what is added up. On an H200,
/// sums in single precision, in tensor cores too, are off by 2^-16 of them at most and mostly by 2^-20; sums of as few as two or
/// sixteen products in half precision by 2^-13.2 to 2^-11.5, wherever they are taken and whatever a guard would look for elsewhere. What tensor cores cut
/// off has one sign, so that it adds up where terms have one: more is allowed of very long sums. 0 where that says nothing: operands whose
/// products are rounded themselves.
double limitBeforeRounding(const workload::Workload &workload, const workload::Case &c)
{
    constexpr double limit = 0x1p-15;
    if (c.exact || !isProduct(workload))
        return 0;
    bool hasSixteen = false;
    const bool fits =
        std::all_of(workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
            const auto &d = workload.distributionOf(tensor, c);
            if (tensor.role == workload::Role::Output)
                return kernel::isFloat(tensor.dtype);
            if (d.kind == workload::DistributionKind::Offsets)
                return true;
            const bool isOperand = tensor.shape.size() > 1;
            const bool isSixteen = tensor.dtype == kernel::DType::F16 || tensor.dtype == kernel::DType::BF16;
            hasSixteen = hasSixteen || (isOperand && isSixteen);
            // Of others single precision itself rounds products.
            const bool isExact = isSixteen || kernel::sizeOf(tensor.dtype) == 1;
            return isUsual(d) && (!isOperand || isExact);
        });
    return fits && hasSixteen ? limit * std::sqrt(c.stretch)
                                    * std::max(1.0, termsOfSum(workload, c).value_or(0) / usualTerms)
                              : 0;
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
    if (instance->tolerance.beforeRounding == 0 && tellsPrecision(workload, c))
        instance->tolerance.beforeRounding = std::numeric_limits<double>::infinity();
    auto expected = source(workload, c, instance->tensors, instance->tolerance);
    if (!expected)
        return tl::unexpected(expected.error());
    instance->expected = std::move(*expected);
    widenTolerance(workload, c, *instance);
    instance->selection = selectionOf(workload);
    return CaseInstancePtr(std::move(instance));
}

} // namespace klineage::gate
