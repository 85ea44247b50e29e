// SPDX-License-Identifier: GPL-3.0-or-later
//
// Scores, exponentials and sums in double throughout: the weights go into the second product unnormalised, and each row is divided by
// their sum in the end.
#include "core/gate/check/attention.h"

#include "core/gate/check/matmul.h"
#include "core/gate/check/parallel.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

struct Packed {
    std::size_t heads, kvHeads, dim;
    std::vector<float> q, k, v;
};

struct Span {
    std::size_t begin, end;
    [[nodiscard]] std::size_t size() const { return end - begin; }
};

/// The rows of some tokens of one head as a matrix of its own.
std::vector<float> headRows(const std::vector<float> &values, std::size_t heads, std::size_t dim,
                            std::size_t head, Span tokens)
{
    std::vector<float> rows(tokens.size() * dim);
    for (std::size_t t = tokens.begin; t < tokens.end; ++t)
        std::copy_n(values.data() + (t * heads + head) * dim, dim, rows.data() + (t - tokens.begin) * dim);
    return rows;
}

/// score -> exp((score − largest) · scale) in place; the sum.
double exponentials(double *row, std::size_t length, double scale)
{
    const double largest = *std::max_element(row, row + length);
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
        row[i] = std::exp((row[i] - largest) * scale);
        sum += row[i];
    }
    return sum;
}

/// How many keys the i-th query of a sequence attends to. Causal: the last query sees all keys, each one before it one key fewer.
std::size_t keysSeen(std::size_t i, std::size_t queries, std::size_t keys, bool causal)
{
    if (!causal)
        return keys;
    return i + 1 + keys > queries ? std::min(keys, i + 1 + keys - queries) : 0;
}

void attend(const Packed &packed, std::size_t head, Span queries, Span keys, bool causal,
            std::vector<double> &out)
{
    const double scale = 1.0 / std::sqrt(static_cast<double>(packed.dim));
    const std::size_t kvHead = head / (packed.heads / packed.kvHeads);
    const auto q = headRows(packed.q, packed.heads, packed.dim, head, queries);
    const auto k = headRows(packed.k, packed.kvHeads, packed.dim, kvHead, keys);
    const auto v = headRows(packed.v, packed.kvHeads, packed.dim, kvHead, keys);
    auto weights = matmul(q, k, queries.size(), keys.size(), packed.dim, true);
    std::vector<double> sums(queries.size());
    parallelRanges(queries.size(), std::max<std::size_t>(1, (std::size_t{1} << 14) / keys.size()),
                   [&](std::size_t begin, std::size_t end) {
                       for (std::size_t i = begin; i < end; ++i) {
                           double *row = weights.data() + i * keys.size();
                           const std::size_t seen = keysSeen(i, queries.size(), keys.size(), causal);
                           std::fill(row + seen, row + keys.size(), 0.0);
                           sums[i] = seen > 0 ? exponentials(row, seen, scale) : 1.0;
                       }
                   });
    const auto result = matmul(std::span<const double>(weights), v, queries.size(), packed.dim, keys.size());
    for (std::size_t i = 0; i < queries.size(); ++i) {
        double *row = out.data() + ((queries.begin + i) * packed.heads + head) * packed.dim;
        for (std::size_t d = 0; d < packed.dim; ++d)
            row[d] = result[i * packed.dim + d] / sums[i];
    }
}

/// Empty when they are no offsets of so many tokens.
std::vector<std::size_t> offsetsOf(const HostTensor &tensor, std::int64_t tokens)
{
    std::vector<std::size_t> offsets;
    double last = 0;
    for (std::size_t i = 0; i < tensor.elements(); ++i) {
        const double offset = kernel::loadElement(tensor.bytes.data(), tensor.dtype, i);
        if (i == 0 ? offset != 0 : offset < last)
            return {};
        last = offset;
        offsets.push_back(static_cast<std::size_t>(offset));
    }
    return last == static_cast<double>(tokens) ? offsets : std::vector<std::size_t>();
}

} // namespace

Result<Expected> attentionOracle(OracleRoles roles, bool causal)
{
    const HostTensor *q = roles["q"];
    const HostTensor *k = roles["k"];
    const HostTensor *v = roles["v"];
    const HostTensor *cuQ = roles["cu_q"];
    const HostTensor *cuK = roles["cu_k"];
    const HostTensor *out = roles["out"];
    if (!q || !k || !v || !cuQ || !cuK || !out)
        return roles.problem({});
    if (q->shape.size() != 3 || k->shape.size() != 3 || cuQ->shape.size() != 1)
        return roles.problem("it takes q, k and v of three dimensions and offsets of one");
    for (const HostTensor *tensor : {q, k, v}) {
        if (kernel::sizeOf(tensor->dtype) > 4)
            return roles.problem("it takes inputs of at most 32 bits an element");
    }
    if (k->shape != v->shape || out->shape != q->shape || cuQ->shape != cuK->shape || k->shape[1] < 1
        || q->shape[1] % k->shape[1] != 0 || q->shape[2] != k->shape[2])
        return roles.problem("the shapes of its tensors do not fit together");
    const auto queries = offsetsOf(*cuQ, q->shape[0]);
    const auto keys = offsetsOf(*cuK, k->shape[0]);
    if (queries.size() < 2 || keys.size() < 2)
        return roles.problem("the offsets do not ascend from 0 to the number of tokens");
    const Packed packed{static_cast<std::size_t>(q->shape[1]),
                        static_cast<std::size_t>(k->shape[1]),
                        static_cast<std::size_t>(q->shape[2]),
                        toFloats(*q),
                        toFloats(*k),
                        toFloats(*v)};
    Expected expected;
    std::vector<double> &result = expected[out->name];
    result.resize(packed.q.size());
    for (std::size_t s = 0; s + 1 < queries.size(); ++s) {
        if (queries[s] == queries[s + 1])
            continue;
        if (keys[s] == keys[s + 1])
            return roles.problem("sequence " + std::to_string(s) + " has queries and no keys");
        for (std::size_t head = 0; head < packed.heads; ++head)
            attend(packed, head, {queries[s], queries[s + 1]}, {keys[s], keys[s + 1]}, causal, result);
    }
    return expected;
}

} // namespace klineage::gate
