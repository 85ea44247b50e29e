/*klineage
surface = "cuda"

[[workspace]]                    # what a part makes of the state before it: D by D, and of nothing: D by D
name = "parts"
dtype = "f32"
shape = ["B", "HV", "64", "2", "16", "16"]

[[workspace]]                    # states before the parts
name = "states"
dtype = "f32"
shape = ["B", "HV", "64", "16", "16"]

[[workspace]]                    # of each token, what its query reads of the state before its part
name = "reads"
dtype = "f32"
shape = ["B", "T", "HV", "16"]

[[launch]]
kernel = "walk_parts"
grid = [64, "B * HV"]
block = [32]
args = ["q", "k", "v", "g", "beta", "output", "parts", "reads", "int T", "int HQ", "int HV"]

[[launch]]
kernel = "join_parts"
grid = ["B * HV"]
block = [256]
shared = "64 * 2 * 16 * 16 * 4"
args = ["initial_state", "parts", "states", "final_state"]

[[launch]]
kernel = "add_states"
grid = [64, "B * HV"]
block = [32]
args = ["states", "reads", "output", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// All tokens in 64 parts side by side: half of a warp walks a part from an empty state, the other half walks what the part makes of any state before it,
// which is linear. The parts are joined one after another.

#include <cuda_bf16.h>

constexpr int D = 16, PARTS = 64;
struct Token {
    uint4 key[2], query[2];
    float value, gate, weight;
};
__device__ __forceinline__ Token tokenAt(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g, const float *beta, size_t token, int head, int column, int HQ, int HV)
{
    Token one;
    const size_t shared = (token * HQ + head / (HV / HQ)) * D, own = token * HV + head;
    one.key[0] = reinterpret_cast<const uint4 *>(k + shared)[0];
    one.key[1] = reinterpret_cast<const uint4 *>(k + shared)[1];
    one.query[0] = reinterpret_cast<const uint4 *>(q + shared)[0];
    one.query[1] = reinterpret_cast<const uint4 *>(q + shared)[1];
    one.value = __bfloat162float(v[own * D + column]);
    one.gate = g[own];
    one.weight = beta[own];
    return one;
}
__device__ __forceinline__ void widen(const uint4 (&from)[2], float (&to)[D])
{
    const unsigned *words = reinterpret_cast<const unsigned *>(from);
#pragma unroll
    for (int i = 0; i < D / 2; ++i) {
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}
__device__ __forceinline__ float product(const float (&a)[D], const float (&b)[D])
{
    float sum[4] = {};
#pragma unroll
    for (int i = 0; i < D; ++i)
        sum[i % 4] = fmaf(a[i], b[i], sum[i % 4]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
__device__ __forceinline__ int beginOf(int part, int T)
{
    return int((long long)(T) * part / PARTS);
}

// Lanes 0 to 15: a column of the state. Lanes 16 to 31: a column of what becomes of a unit matrix without values.
extern "C" __global__ __launch_bounds__(32) void walk_parts(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g, const float *beta, float *out, float *parts, float *reads, int T, int HQ, int HV)
{
    const int batch = blockIdx.y / HV, head = blockIdx.y % HV, lane = threadIdx.x, column = lane % D;
    const bool isState = lane < D;
    const int begin = beginOf(blockIdx.x, T), end = beginOf(blockIdx.x + 1, T);
    float state[D];
#pragma unroll
    for (int i = 0; i < D; ++i)
        state[i] = !isState && i == column ? 1.0f : 0.0f;
    Token next;
    if (begin < end)
        next = tokenAt(q, k, v, g, beta, size_t(batch) * T + begin, head, column, HQ, HV);
    for (int t = begin; t < end; ++t) {
        const Token now = next;
        if (t + 1 < end)
            next = tokenAt(q, k, v, g, beta, size_t(batch) * T + t + 1, head, column, HQ, HV);
        float key[D], query[D];
        widen(now.key, key);
        widen(now.query, query);
        const float decay = expf(now.gate), value = isState ? now.value : 0.0f;
        const float update = now.weight * (value - decay * product(key, state));
#pragma unroll
        for (int i = 0; i < D; ++i)
            state[i] = fmaf(decay, state[i], key[i] * update);
        float *to = isState ? out : reads;
        to[((size_t(batch) * T + t) * HV + head) * D + column] = 0.25f * product(query, state);
    }
    float *own = parts + ((size_t(blockIdx.y) * PARTS + blockIdx.x) * 2 + (isState ? 1 : 0)) * D * D;
#pragma unroll
    for (int i = 0; i < D; ++i)
        own[i * D + column] = state[i];
}

// A thread an element of the state.
extern "C" __global__ __launch_bounds__(256) void join_parts(const float *initial, const float *parts, float *states, float *final)
{
    extern __shared__ float4 joined[];
    __shared__ float state[2][D][D];
    const int row = threadIdx.x / D, column = threadIdx.x % D;
    const float4 *from = reinterpret_cast<const float4 *>(parts + size_t(blockIdx.x) * PARTS * 2 * D * D);
#pragma unroll 8
    for (int i = threadIdx.x; i < PARTS * 2 * D * D / 4; i += 256)
        joined[i] = from[i];
    float now = initial[size_t(blockIdx.x) * D * D + threadIdx.x];
    __syncthreads();
    const float *own = reinterpret_cast<const float *>(joined);
    for (int part = 0; part < PARTS; ++part) {
        states[(size_t(blockIdx.x) * PARTS + part) * D * D + threadIdx.x] = now;
        state[part % 2][row][column] = now;
        __syncthreads();
        const float *line = own + part * 2 * D * D + row * D;
        float next[4] = {own[(part * 2 + 1) * D * D + threadIdx.x], 0, 0, 0};
#pragma unroll
        for (int i = 0; i < D; ++i)
            next[i % 4] = fmaf(line[i], state[part % 2][i][column], next[i % 4]);
        now = (next[0] + next[1]) + (next[2] + next[3]);
    }
    final[size_t(blockIdx.x) * D * D + threadIdx.x] = now;
}

// Two tokens at a time.
extern "C" __global__ __launch_bounds__(32) void add_states(const float *states, const float *reads, float *out, int T, int HV)
{
    const int batch = blockIdx.y / HV, head = blockIdx.y % HV, column = threadIdx.x % D;
    const int begin = beginOf(blockIdx.x, T), end = beginOf(blockIdx.x + 1, T);
    float state[D];
#pragma unroll
    for (int i = 0; i < D; ++i)
        state[i] = states[(size_t(blockIdx.y) * PARTS + blockIdx.x) * D * D + i * D + column];
    for (int t = begin + threadIdx.x / D; t < end; t += 2) {
        const size_t at = ((size_t(batch) * T + t) * HV + head) * D;
        float read[D];
#pragma unroll
        for (int i = 0; i < D / 4; ++i)
            *reinterpret_cast<float4 *>(&read[4 * i]) = *reinterpret_cast<const float4 *>(reads + at + 4 * i);
        out[at + column] += product(read, state);
    }
}
