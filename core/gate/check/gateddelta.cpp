// SPDX-License-Identifier: GPL-3.0-or-later
//
// The columns of a state never meet: column j of S sees column j of v and gives column j of the result. So a job walks over all
// tokens of one head with a strip of columns, whose state (16 KiB for 128 keys) stays in the nearest cache.
#include "core/gate/check/gateddelta.h"

#include "core/base/vectorclones.h"
#include "core/gate/check/parallel.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace klineage::gate {

namespace {

constexpr std::size_t stripWidth = 16;

typedef double StripLanes __attribute__((vector_size(stripWidth * sizeof(double)), aligned(8)));
using Strip = std::array<double, stripWidth>;

struct Shape {
    std::size_t batch, tokens, keyHeads, heads, keys, columns;
};

struct Inputs {
    std::vector<float> q, k, v, g, beta, state;
};

/// One token: state[keys] strips, v in and what is read with q out.
KLINEAGE_VECTOR_CLONES
void advance(Strip *state, std::size_t keys, const float *k, const float *q, double decay, double beta,
             const Strip &v, Strip &out)
{
    StripLanes predicted{};
    for (std::size_t i = 0; i < keys; ++i)
        predicted += static_cast<double>(k[i]) * *reinterpret_cast<const StripLanes *>(&state[i]);
    const StripLanes update = beta * (*reinterpret_cast<const StripLanes *>(&v) - decay * predicted);
    StripLanes sum{};
    for (std::size_t i = 0; i < keys; ++i) {
        StripLanes &row = *reinterpret_cast<StripLanes *>(&state[i]);
        row = decay * row + static_cast<double>(k[i]) * update;
        sum += static_cast<double>(q[i]) * row;
    }
    *reinterpret_cast<StripLanes *>(&out) = sum;
}

/// All tokens of one head of one batch, for `width` columns from `column` on.
void walk(const Shape &shape, const Inputs &in, std::size_t batch, std::size_t head, std::size_t column,
          std::vector<double> &out, std::vector<double> &final)
{
    const std::size_t width = std::min(stripWidth, shape.columns - column);
    const double scale = 1.0 / std::sqrt(static_cast<double>(shape.keys));
    const std::size_t stateBegin = (batch * shape.heads + head) * shape.keys * shape.columns + column;
    std::vector<Strip> state(shape.keys, Strip{});
    for (std::size_t i = 0; i < shape.keys; ++i)
        std::copy_n(in.state.data() + stateBegin + i * shape.columns, width, state[i].data());
    Strip v{};
    Strip result{};
    for (std::size_t t = 0; t < shape.tokens; ++t) {
        const std::size_t token = batch * shape.tokens + t;
        const std::size_t gate = token * shape.heads + head;
        const std::size_t row = (token * shape.keyHeads + head / (shape.heads / shape.keyHeads)) * shape.keys;
        std::copy_n(in.v.data() + gate * shape.columns + column, width, v.data());
        advance(state.data(), shape.keys, in.k.data() + row, in.q.data() + row,
                std::exp(static_cast<double>(in.g[gate])), static_cast<double>(in.beta[gate]), v, result);
        for (std::size_t j = 0; j < width; ++j)
            out[gate * shape.columns + column + j] = result[j] * scale;
    }
    for (std::size_t i = 0; i < shape.keys; ++i)
        std::copy_n(state[i].data(), width, final.data() + stateBegin + i * shape.columns);
}

} // namespace

Result<Expected> gatedDeltaOracle(OracleRoles roles)
{
    const HostTensor *q = roles["q"];
    const HostTensor *k = roles["k"];
    const HostTensor *v = roles["v"];
    const HostTensor *g = roles["g"];
    const HostTensor *beta = roles["beta"];
    const HostTensor *initial = roles["initial_state"];
    const HostTensor *out = roles["out"];
    const HostTensor *final = roles["final_state"];
    if (!q || !k || !v || !g || !beta || !initial || !out || !final)
        return roles.problem({});
    if (k->shape.size() != 4 || v->shape.size() != 4)
        return roles.problem("it takes q, k and v of four dimensions");
    for (const HostTensor *tensor : {q, k, v, g, beta, initial}) {
        if (kernel::sizeOf(tensor->dtype) > 4)
            return roles.problem("it takes inputs of at most 32 bits an element");
    }
    using Extents = std::vector<std::int64_t>;
    const Extents gates(v->shape.begin(), v->shape.begin() + 3);
    const Extents state{v->shape[0], v->shape[2], k->shape[3], v->shape[3]};
    if (q->shape != k->shape || k->shape[0] != v->shape[0] || k->shape[1] != v->shape[1] || g->shape != gates
        || beta->shape != gates || initial->shape != state || final->shape != state || out->shape != v->shape)
        return roles.problem("the shapes of its tensors do not fit together");
    if (v->shape[2] % k->shape[2] != 0)
        return roles.problem("its heads are no multiple of its key heads");

    const auto extent = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    const Shape shape{extent(v->shape[0]), extent(v->shape[1]), extent(k->shape[2]),
                      extent(v->shape[2]), extent(k->shape[3]), extent(v->shape[3])};
    const Inputs in{toFloats(*q), toFloats(*k),    toFloats(*v),
                    toFloats(*g), toFloats(*beta), toFloats(*initial)};
    Expected expected;
    std::vector<double> &result = expected[out->name];
    std::vector<double> &last = expected[final->name];
    result.resize(in.v.size());
    last.resize(in.state.size());
    const std::size_t strips = (shape.columns + stripWidth - 1) / stripWidth;
    parallelFor(shape.batch * shape.heads * strips, [&](std::size_t job) {
        const std::size_t head = job / strips;
        walk(shape, in, head / shape.heads, head % shape.heads, job % strips * stripWidth, result, last);
    });
    return expected;
}

} // namespace klineage::gate
