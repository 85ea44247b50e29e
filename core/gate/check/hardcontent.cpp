// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/hardcontent.h"

#include "core/gate/check/comparison.h"
#include "core/gate/check/roles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace klineage::gate {

namespace {

using workload::Distribution;
using workload::DistributionKind;

constexpr double littleFlops = 2e8;
constexpr double littleBytes = 16e6;
constexpr double normShare = 0x1p-21;
constexpr double widerRows = 6;
constexpr double largestHalf = 65504;

constexpr std::array rowOperators{"softmax_rows", "layernorm_rows",  "rmsnorm_rows", "add_rmsnorm_rows",
                                  "silu",         "sum_rows",        "cumsum_rows",  "sort_rows",
                                  "topk_rows",    "topk_sorted_rows"};

template <typename List>
bool contains(const List &list, std::string_view word)
{
    return std::find(list.begin(), list.end(), word) != list.end();
}

bool isProduct(const std::string &oracle)
{
    return oracle.starts_with("matmul_");
}

bool hasKind(const workload::Workload &workload, const workload::Case &c, DistributionKind kind)
{
    return std::any_of(workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
        return tensor.role == workload::Role::Input && workload.distributionOf(tensor, c).kind == kind;
    });
}

/// Cases whose inputs are filled otherwise than the timed one's, offsets aside.
std::vector<const workload::Case *> hardCases(const workload::Workload &workload)
{
    const workload::Case &timed = workload.cases.front();
    std::vector<const workload::Case *> cases;
    for (const workload::Case &c : workload.cases) {
        const bool differs = std::any_of(
            workload.tensors.begin(), workload.tensors.end(), [&](const workload::Tensor &tensor) {
                const Distribution &mine = workload.distributionOf(tensor, c);
                return tensor.role == workload::Role::Input && mine.kind != DistributionKind::Offsets
                       && !(mine == workload.distributionOf(tensor, timed));
            });
        if ((!c.exact || timed.exact) && differs)
            cases.push_back(&c);
    }
    return cases;
}

/// The largest of the sums of squares of the rows of a matrix (its last dimension), or of its columns (the one before), over all matrices.
double largestSquares(const HostTensor &tensor, bool columns)
{
    const std::vector<float> values = toFloats(tensor);
    const std::size_t across = tensor.rowLength();
    const std::size_t down =
        tensor.shape.size() < 2 ? 1 : static_cast<std::size_t>(tensor.shape[tensor.shape.size() - 2]);
    double largest = 0;
    std::vector<double> sums(columns ? across : 1);
    for (std::size_t row = 0; row < values.size() / across; ++row) {
        if (!columns || row % down == 0)
            std::fill(sums.begin(), sums.end(), 0.0);
        for (std::size_t i = 0; i < across; ++i) {
            const double value = values[row * across + i];
            sums[columns ? i : 0] += value * value;
        }
        if (!columns || row % down + 1 == down)
            largest = std::max(largest, *std::max_element(sums.begin(), sums.end()));
    }
    return largest;
}

/// Beyond which no element can be, by Cauchy and Schwarz; nothing for what is no product.
std::optional<double> largestProduct(const workload::Workload &workload, const CaseInstance &instance)
{
    OracleRoles roles(workload, instance.tensors);
    if (isProduct(workload.oracle)) {
        const HostTensor *a = roles["a"];
        const HostTensor *b = roles["b"];
        if (!a || !b)
            return std::nullopt;
        return std::sqrt(largestSquares(*a, false) * largestSquares(*b, workload.oracle != "matmul_nt"));
    }
    if (workload.oracle != "conv2d_nhwc")
        return std::nullopt;
    const HostTensor *data = roles["data"];
    const HostTensor *weight = roles["weight"];
    if (!data || !weight)
        return std::nullopt;
    // Of a window: as many pixels as there are, each at most the largest.
    const double pixels = static_cast<double>(weight->shape.front()) / static_cast<double>(data->rowLength());
    return std::sqrt(pixels * largestSquares(*data, false) * largestSquares(*weight, true));
}

} // namespace

std::optional<workload::Case> hardContent(const workload::Workload &workload)
{
    workload::Case hard = workload.cases.front();
    std::vector<const workload::Case *> cases = hardCases(workload);
    std::size_t ordinary = 0;
    if (isProduct(workload.oracle) || workload.oracle == "conv2d_nhwc") {
        std::erase_if(
            cases, [&](const workload::Case *c) { return !hasKind(workload, *c, DistributionKind::Mixed); });
        if (cases.size() > 1)
            cases.resize(1);
    } else if (!contains(rowOperators, workload.oracle)) {
        return std::nullopt;
    } else {
        ordinary = cases.size();
    }
    if (cases.empty())
        return std::nullopt;
    std::string names;
    for (const workload::Case *c : cases)
        names += (names.empty() ? "" : ", ") + c->name;
    hard.name += " (as " + names + ")";
    for (const workload::Tensor &tensor : workload.tensors) {
        if (tensor.role != workload::Role::Input)
            continue;
        Distribution all;
        for (const workload::Case *c : cases)
            all.parts.push_back(workload.distributionOf(tensor, *c));
        all.parts.insert(all.parts.end(), ordinary, workload.distributionOf(tensor, workload.cases.front()));
        hard.distributions[tensor.name] = all.parts.size() == 1 ? all.parts.front() : all;
    }
    return hard;
}

bool isLittleWork(const workload::Workload &workload)
{
    const kernel::Bindings bindings = workload.bindings(workload.cases.front());
    return workload.flops.evaluateReal(bindings).value_or(0) <= littleFlops
           && workload.bytes.evaluateReal(bindings).value_or(0) <= littleBytes;
}

bool overflows(const CaseInstance &instance)
{
    for (const HostTensor &tensor : instance.tensors) {
        const auto expected = instance.expected.find(tensor.name);
        if (expected == instance.expected.end() || tensor.dtype != kernel::DType::F16)
            continue;
        for (std::size_t i = 0; i < expected->second.size(); ++i) {
            if (const double value = expected->second[i];
                std::isfinite(value) && std::abs(value) > largestHalf)
                return true;
        }
    }
    return false;
}

void widenTolerance(const workload::Workload &workload, const workload::Case &c, CaseInstance &instance)
{
    if (instance.tolerance.exact)
        return;
    const bool patched = std::any_of(c.distributions.begin(), c.distributions.end(),
                                     [](const auto &entry) { return !entry.second.parts.empty(); });
    if (patched)
        instance.tolerance.atol *= widerRows;
    if (!hasKind(workload, c, DistributionKind::Mixed))
        return;
    const auto largest = largestProduct(workload, instance);
    for (const auto &[name, expected] : instance.expected) {
        const double rms = rootMeanSquare(expected);
        if (largest && rms > 0)
            instance.tolerance.atol = std::max(instance.tolerance.atol, normShare * *largest / rms);
    }
}

} // namespace klineage::gate
