// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/workload.h"

#include "core/workload/tolerance.h"

#include <algorithm>
#include <cmath>

namespace klineage::workload {

namespace {

constexpr std::int64_t extentLimit = std::int64_t{1} << 31;
constexpr double unscaledReduction = 1024; ///< terms at which the class limits hold as they are

} // namespace

Tolerance classTolerance(kernel::DType dtype)
{
    using kernel::DType;
    Tolerance limits;
    const auto set = [&limits](double relL2, double rtol, double atol) {
        limits.relL2 = relL2;
        limits.rtol = rtol;
        limits.atol = atol;
        return limits;
    };
    switch (dtype) {
    case DType::F64:
        return set(1e-13, 1e-13, 1e-13);
    case DType::F32:
        return set(1e-5, 1.3e-6, 1e-5);
    case DType::TF32:
        return set(1e-3, 1e-3, 1e-3);
    case DType::F16:
        return set(4e-4, 1e-3, 1e-3);
    case DType::BF16:
        return set(3e-3, 1.6e-2, 1e-3);
    case DType::F8E4M3:
    case DType::F8E5M2:
        return set(4e-3, 2e-2, 1e-3);
    default:
        return set(0, 0, 0);
    }
}

Tolerance widestTolerance(const std::vector<Tensor> &tensors)
{
    Tolerance limits;
    limits.relL2 = limits.rtol = limits.atol = 0;
    for (const Tensor &tensor : tensors) {
        if (tensor.role == Role::Output && classTolerance(tensor.dtype).relL2 >= limits.relL2)
            limits = classTolerance(tensor.dtype);
    }
    return limits;
}

Case drawnAt(const Case &c, const std::map<std::string, std::uint64_t> &indices)
{
    Case result = c;
    std::string values;
    for (const auto &[axis, range] : c.drawn) {
        const auto index = indices.find(axis);
        const auto count = static_cast<std::uint64_t>(range.count());
        const std::uint64_t steps = index == indices.end() ? 0 : index->second % count;
        const std::int64_t value = range.low + static_cast<std::int64_t>(steps) * range.step;
        result.axes[axis] = value;
        values += (values.empty() ? "" : ", ") + axis + " = " + std::to_string(value);
    }
    result.drawn.clear();
    if (!values.empty())
        result.name += " (" + values + ")";
    return result;
}

const Tensor *Workload::findTensor(std::string_view tensorName) const
{
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const Tensor &t) { return t.name == tensorName; });
    return found == tensors.end() ? nullptr : &*found;
}

const Case *Workload::findCase(std::string_view caseName) const
{
    const auto found =
        std::find_if(cases.begin(), cases.end(), [&](const Case &c) { return c.name == caseName; });
    return found == cases.end() ? nullptr : &*found;
}

kernel::Bindings Workload::bindings(const Case &c) const
{
    kernel::Bindings bindings;
    for (const auto &[axis, extent] : c.axes)
        bindings[axis] = extent;
    return bindings;
}

Result<std::vector<std::int64_t>> Workload::shapeOf(const Tensor &tensor, const Case &c) const
{
    std::vector<std::int64_t> shape;
    const kernel::Bindings names = bindings(c);
    for (const kernel::Expression &expression : tensor.shape) {
        const Result<std::int64_t> extent = expression.evaluateInteger(names);
        const std::string where = "the shape of '" + tensor.name + "' in case '" + c.name + "', ";
        if (!extent)
            return fail(ErrorCode::InvalidInput, where + extent.error().message);
        if (*extent < 1 || *extent >= extentLimit)
            return fail(ErrorCode::InvalidInput, where + "the extent '" + expression.text() + "' is "
                                                     + std::to_string(*extent) + "; expected 1 to 2^31 - 1.");
        shape.push_back(*extent);
    }
    return shape;
}

Result<std::vector<kernel::ResolvedBuffer>> Workload::buffersOf(const Case &c) const
{
    std::vector<kernel::ResolvedBuffer> buffers;
    for (const Tensor &tensor : tensors) {
        Result<std::vector<std::int64_t>> shape = shapeOf(tensor, c);
        if (!shape)
            return tl::unexpected(shape.error());
        buffers.push_back({tensor.name, tensor.dtype, std::move(*shape)});
    }
    return buffers;
}

Result<Tolerance> Workload::toleranceFor(const Case &c) const
{
    Tolerance limits = tolerance;
    if (c.exact) {
        limits.relL2 = limits.rtol = limits.atol = 0;
        limits.exact = true;
    }
    for (double *limit : {&limits.relL2, &limits.rtol, &limits.atol, &limits.rowSum})
        *limit *= std::sqrt(c.stretch);
    if (!tolerance.reduction)
        return limits;
    const Result<double> terms = tolerance.reduction->evaluateReal(bindings(c));
    if (!terms)
        return fail(ErrorCode::InvalidInput,
                    "the reduction in case '" + c.name + "', " + terms.error().message);
    if (*terms < 1)
        return fail(ErrorCode::InvalidInput, "the reduction '" + tolerance.reduction->text() + "' in case '"
                                                 + c.name
                                                 + "' is below 1; expected the number of terms of a sum.");
    limits.atol *=
        std::sqrt(*terms / c.stretch / unscaledReduction); // the terms count the stretch themselves
    return limits;
}

const Distribution &Workload::distributionOf(const Tensor &tensor, const Case &c) const
{
    const auto found = c.distributions.find(tensor.name);
    return found == c.distributions.end() ? tensor.distribution : found->second;
}

} // namespace klineage::workload
