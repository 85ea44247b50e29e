/*klineage
surface = "cuda"

[[launch]]
kernel = "delta"
grid = ["B * HV"]
block = [16]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int B", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A thread a column, keys in pairs, two sums side by side: the parent of others.


#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int D = 16;
struct Sizes {
    int T, HQ, HV;
};
struct Inputs {
    const __nv_bfloat16 *q, *k, *v;
    const float *g, *beta, *initial;
};
struct Token {
    uint4 k[2], q[2];
    float v, g, beta;
};
__device__ __forceinline__ Token tokenAt(const Inputs &in, const Sizes &s, size_t token, int head, int column)
{
    const size_t key = (token * s.HQ + head / (s.HV / s.HQ)) * D, gate = token * s.HV + head;
    const uint4 *k = reinterpret_cast<const uint4 *>(in.k + key), *q = reinterpret_cast<const uint4 *>(in.q + key);
    return {{k[0], k[1]}, {q[0], q[1]}, __bfloat162float(in.v[gate * D + column]), in.g[gate], in.beta[gate]};
}
__device__ __forceinline__ float2 pairOf(const uint4 (&from)[2], int i)
{
    const uint4 &v = from[i / 4];
    const unsigned two = i % 4 == 0 ? v.x : i % 4 == 1 ? v.y : i % 4 == 2 ? v.z : v.w;
    return make_float2(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u));
}
// A column of a state in single precision.
struct Single {
    float2 state[D / 2];
    __device__ __forceinline__ void begin(const float *from)
    {
#pragma unroll
        for (int i = 0; i < D / 2; ++i)
            state[i] = make_float2(from[2 * i * D], from[(2 * i + 1) * D]);
    }
    __device__ __forceinline__ float step(const Token &token, float decay)
    {
        float2 seen[2] = {}, read[2] = {};
#pragma unroll
        for (int i = 0; i < D / 2; ++i) {
            const float2 key = pairOf(token.k, i);
            seen[i % 2].x = fmaf(key.x, state[i].x, seen[i % 2].x);
            seen[i % 2].y = fmaf(key.y, state[i].y, seen[i % 2].y);
        }
        const float update = token.beta * (token.v - decay * ((seen[0].x + seen[0].y) + (seen[1].x + seen[1].y)));
#pragma unroll
        for (int i = 0; i < D / 2; ++i) {
            const float2 key = pairOf(token.k, i), query = pairOf(token.q, i);
            state[i].x = fmaf(decay, state[i].x, key.x * update);
            state[i].y = fmaf(decay, state[i].y, key.y * update);
            read[i % 2].x = fmaf(query.x, state[i].x, read[i % 2].x);
            read[i % 2].y = fmaf(query.y, state[i].y, read[i % 2].y);
        }
        return (read[0].x + read[0].y) + (read[1].x + read[1].y);
    }
    __device__ __forceinline__ void end(float *to) const
    {
#pragma unroll
        for (int i = 0; i < D / 2; ++i) {
            to[2 * i * D] = state[i].x;
            to[(2 * i + 1) * D] = state[i].y;
        }
    }
};
template <typename Way>
__device__ __forceinline__ void walk(const Inputs &in, const Sizes &s, int batch, int head, int column, float *out, float *final)
{
    const size_t at = (size_t(batch) * s.HV + head) * D * D + column, first = size_t(batch) * s.T;
    Way way;
    way.begin(in.initial + at);
    Token next = tokenAt(in, s, first, head, column);
    for (int t = 0; t < s.T; ++t) {
        const Token token = next;
        next = tokenAt(in, s, first + min(t + 1, s.T - 1), head, column);
        out[((first + t) * s.HV + head) * D + column] = 0.25f * way.step(token, expf(token.g));
    }
    way.end(final + at);
}
extern "C" __global__ __launch_bounds__(16) void delta(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g, const float *beta, const float *initial, float *out, float *final, int B, int T, int HQ, int HV)
{
    const Inputs in = {q, k, v, g, beta, initial};
    const Sizes s = {T, HQ, HV};
    const int batch = blockIdx.x / HV, head = blockIdx.x % HV, column = threadIdx.x;
    walk<Single>(in, s, batch, head, column, out, final);
}
