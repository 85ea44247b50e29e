// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/precision.h"

#include "core/gate/check/comparison.h"
#include "core/gate/check/hardparts.h"

namespace klineage::gate {

namespace {

constexpr double timesParent = 2; ///< another order of the same sums
constexpr double timesUsual = 16; ///< where that is less than what a type or a unit is off by
constexpr double ofSingle = 0x1p-18;
constexpr double ofSixteenBits = 0x1p-15; ///< limitBeforeRounding() of products
constexpr double ofEightBits = 0x1p-8;    ///< Hopper's tensor cores: 2^-9.2
constexpr double ofTf32 = 0x1p-10;

double ofType(kernel::DType dtype)
{
    switch (dtype) {
    case kernel::DType::F64:
        return 0x1p-42;
    case kernel::DType::F32:
        return 0x1p-17; // a class of f32 allows 1e-5
    case kernel::DType::TF32:
        return ofTf32;
    default:
        return ofSixteenBits;
    }
}

bool isOperand(const workload::Tensor &tensor)
{
    return tensor.role == workload::Role::Input && kernel::isFloat(tensor.dtype) && tensor.shape.size() > 1;
}

} // namespace

bool isPlain(const workload::Distribution &d)
{
    return d.parts.empty() && d.cancels == 0 && d.spike == 0 && d.pair == 0 && d.drift == 0 && d.factor == 1;
}

bool tellsPrecision(const workload::Workload &workload, const workload::Case &c)
{
    const auto &all = workload.tensors;
    return !c.exact && std::all_of(all.begin(), all.end(), [&](const workload::Tensor &tensor) {
        return tensor.role == workload::Role::Output || isPlain(workload.distributionOf(tensor, c));
    });
}

double precisionAllowed(const workload::Workload &workload, const workload::Tensor &output,
                        std::size_t elements, double parent)
{
    // What is only part of a result, or averaged, loses less of it; but not beside a parent that has it all.
    double usual = std::min(ofType(output.dtype), std::max(ofSingle, timesUsual * parent));
    double between = 0;
    std::size_t widest = 0; // of the operands
    for (const workload::Tensor &tensor : workload.tensors) {
        if (!isOperand(tensor))
            continue;
        widest = std::max(widest, kernel::sizeOf(tensor.dtype));
        if (kernel::sizeOf(tensor.dtype) <= 2)
            between =
                std::max(between, unitRoundoff(tensor.dtype == kernel::DType::F16 ? kernel::DType::F16
                                                                                  : kernel::DType::BF16));
        if (tensor.dtype == kernel::DType::TF32)
            usual = std::max(usual, ofTf32);
    }
    if (isProduct(workload) && widest > 0 && widest <= 2 && output.dtype != kernel::DType::F64) {
        const double terms = termsOfSum(workload, workload.cases.front()).value_or(0);
        usual =
            std::max(usual, (widest == 1 ? ofEightBits : ofSixteenBits) * std::max(1.0, terms / usualTerms));
    }
    if (workload.tolerance.roundsBetween)
        usual = std::max(usual, between);
    return std::max(usual * fewElements(elements), timesParent * parent);
}

} // namespace klineage::gate
