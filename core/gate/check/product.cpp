// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/product.h"

#include "core/gate/check/matmul.h"
#include "core/gate/check/parallel.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace klineage::gate {

namespace {

/// Where each of the batch begins, all of m rows; empty when the leading dimensions are not the same ones.
std::vector<std::int64_t> batchOffsets(const HostTensor &a, const HostTensor &b, const HostTensor &out)
{
    const auto isSame = [&](const HostTensor &other) {
        return other.shape.size() == a.shape.size()
               && std::equal(a.shape.begin(), a.shape.end() - 2, other.shape.begin());
    };
    if (a.shape.size() < 2 || !isSame(b) || !isSame(out))
        return {};
    const auto batch =
        std::accumulate(a.shape.begin(), a.shape.end() - 2, std::int64_t{1}, std::multiplies<>());
    const std::int64_t m = a.shape[a.shape.size() - 2];
    if (out.shape[out.shape.size() - 2] != m)
        return {};
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i <= batch; ++i)
        offsets.push_back(i * m);
    return offsets;
}

/// Empty when they are not such as a grouped product has.
std::vector<std::int64_t> groupOffsets(const HostTensor &a, const HostTensor &b, const HostTensor &offsets,
                                       const HostTensor &out)
{
    if (a.shape.size() != 2 || b.shape.size() != 3 || out.shape.size() != 2 || offsets.shape.size() != 1
        || out.shape[0] != a.shape[0] || offsets.shape[0] != b.shape[0] + 1)
        return {};
    return ascendingOffsets(offsets, a.shape[0]);
}

} // namespace

Result<GroupedProduct> groupedProductOf(OracleRoles &roles, Product product)
{
    const bool grouped = product == Product::GroupedNn;
    const bool hasBias = roles.has("bias");
    GroupedProduct made;
    made.a = roles["a"];
    made.b = roles["b"];
    made.bias = hasBias ? roles["bias"] : nullptr;
    made.out = roles["out"];
    const HostTensor *offsets = grouped ? roles["offsets"] : nullptr;
    if (!made.a || !made.b || !made.out || (hasBias && !made.bias) || (grouped && !offsets))
        return roles.problem({});
    for (const HostTensor *tensor : {made.a, made.b, made.bias}) {
        if (tensor && kernel::sizeOf(tensor->dtype) > 4)
            return roles.problem("it takes inputs of at most 32 bits an element");
    }
    made.offsets = grouped ? groupOffsets(*made.a, *made.b, *offsets, *made.out)
                           : batchOffsets(*made.a, *made.b, *made.out);
    if (made.offsets.empty())
        return roles.problem("the shapes of its tensors do not fit together, or its offsets do not ascend");
    made.transposeB = product == Product::Nt;
    made.n = made.out->shape.back();
    made.k = made.a->shape.back();
    const auto dimensions = made.b->shape.size();
    const std::int64_t down = made.b->shape[dimensions - 2];
    const std::int64_t across = made.b->shape[dimensions - 1];
    if (down != (made.transposeB ? made.n : made.k) || across != (made.transposeB ? made.k : made.n)
        || (made.bias && made.bias->shape != std::vector{made.n}))
        return roles.problem("the shapes of its tensors do not fit together");
    return made;
}

Result<Expected> productOracle(OracleRoles roles, Product product)
{
    const auto made = groupedProductOf(roles, product);
    if (!made)
        return tl::unexpected(made.error());
    const std::vector<float> a = toFloats(*made->a);
    const std::vector<float> b = toFloats(*made->b);
    const auto n = static_cast<std::size_t>(made->n);
    const auto k = static_cast<std::size_t>(made->k);
    Expected expected;
    std::vector<double> &result = expected[made->out->name];
    result.resize(made->out->elements());
    for (std::size_t group = 0; group + 1 < made->offsets.size(); ++group) {
        const auto begin = static_cast<std::size_t>(made->offsets[group]);
        const auto rows = static_cast<std::size_t>(made->offsets[group + 1]) - begin;
        if (rows == 0)
            continue;
        const auto part = matmul(std::span(a).subspan(begin * k, rows * k),
                                 std::span(b).subspan(group * n * k, n * k), rows, n, k, made->transposeB);
        std::copy(part.begin(), part.end(), result.begin() + static_cast<std::ptrdiff_t>(begin * n));
    }
    if (!made->bias)
        return expected;
    const std::vector<float> bias = toFloats(*made->bias);
    parallelRanges(result.size(), usualGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            result[i] += static_cast<double>(bias[i % n]);
    });
    return expected;
}

} // namespace klineage::gate
