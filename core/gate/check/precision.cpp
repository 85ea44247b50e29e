// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/precision.h"

#include "core/gate/check/comparison.h"
#include "core/gate/check/hardparts.h"

namespace klineage::gate {

namespace {

constexpr double timesParent =
    8; ///< what another order of the same sums makes of it, and chance of few results
constexpr double ofSixteenBits = 0x1p-15; ///< limitBeforeRounding() of products
constexpr double ofWider = 0x1p-17;       ///< a class of f32 allows 1e-5
constexpr double ofEightBits = 0x1p-8;    ///< Hopper's tensor cores: 2^-9.2

} // namespace

bool isPlain(const workload::Distribution &d)
{
    return d.parts.empty() && d.cancels == 0 && d.spike == 0 && d.pair == 0 && d.drift == 0
           && d.termOctaves == 0 && d.factor == 1;
}

bool tellsPrecision(const workload::Workload &workload, const workload::Case &c)
{
    return !c.exact
           && std::all_of(
               workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
                   return tensor.role == workload::Role::Output ? kernel::isFloat(tensor.dtype)
                                                                : isPlain(workload.distributionOf(tensor, c));
               });
}

double precisionAllowed(const workload::Workload &workload, double parent)
{
    double usual = ofWider;
    double roundoff = unitRoundoff(kernel::DType::F16); // as that of tf32
    for (const workload::Tensor &tensor : workload.tensors) {
        if (!kernel::isFloat(tensor.dtype))
            continue;
        const std::size_t bytes = kernel::sizeOf(tensor.dtype);
        if (bytes == 1 || tensor.dtype == kernel::DType::BF16)
            roundoff = unitRoundoff(kernel::DType::BF16);
        if (tensor.dtype == kernel::DType::TF32)
            usual = std::max(usual, unitRoundoff(kernel::DType::F16));
        usual = std::max(usual, bytes == 1 ? ofEightBits : bytes == 2 ? ofSixteenBits : ofWider);
    }
    usual *= std::max(1.0, termsOfSum(workload, workload.cases.front()).value_or(0) / usualTerms);
    if (workload.tolerance.roundsBetween)
        usual = std::max(usual, roundoff);
    return std::max(usual, timesParent * parent);
}

} // namespace klineage::gate
