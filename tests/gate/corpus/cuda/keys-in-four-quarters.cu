/*klineage
surface = "cuda"

[[workspace]]
name = "sums"
dtype = "f32"
shape = [4, "T", "H", 64]

[[workspace]]
name = "scales"
dtype = "f32"
shape = [4, "T", "H", 2]

[[launch]]
kernel = "attend"
grid = ["ceil_div(T, 16)", "H", 4]
block = [128]
args = ["q", "k", "v", "cu_q", "cu_k", "sums", "scales", "int B", "int T", "int H"]

[[launch]]
kernel = "unite"
grid = ["T", "H"]
block = [64]
args = ["sums", "scales", "output", "int T", "int H"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each quarter of the keys by blocks of its own, with its largest score, and a launch that puts four quarters together.

#include <cuda_fp16.h>

constexpr int D = 64, QUERIES = 16;
__device__ __forceinline__ void eightOf(const __half *from, float (&to)[8])
{
    const uint4 raw = *reinterpret_cast<const uint4 *>(from);
    const __half2 *two = reinterpret_cast<const __half2 *>(&raw);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(two[i]);
        to[2 * i] = pair.x;
        to[2 * i + 1] = pair.y;
    }
}
// The sequence of a query.
__device__ int sequenceOf(const int *cu, int B, int token)
{
    int low = 0, high = B - 1;
    while (low < high) { // the last one that begins at or before the token
        const int middle = (low + high + 1) / 2;
        if (cu[middle] <= token)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// Eight threads a query, eight elements each; keys and values straight from memory.
extern "C" __global__ __launch_bounds__(128) void attend(const __half *q, const __half *k, const __half *v, const int *cuQ, const int *cuK, float *sums, float *scales, int B, int T, int H)
{
    const int part = threadIdx.x % 8, token = blockIdx.x * QUERIES + threadIdx.x / 8, head = blockIdx.y, quarter = blockIdx.z;
    const bool there = token < T;
    const int sequence = there ? sequenceOf(cuQ, B, token) : 0;
    const int first = there ? cuK[sequence] : 0, length = there ? cuK[sequence + 1] - first : 0, share = (length + 3) / 4;
    const int begin = min(first + length, first + quarter * share), end = min(first + length, begin + share);
    float query[8], sum[8] = {}, total = 0;
    eightOf(q + (size_t(there ? token : 0) * H + head) * D + part * 8, query);
    for (float &element : query)
        element *= 0.125f * 1.4426950408889634f; // scores are powers of two

    const unsigned mask = 0xffu << (threadIdx.x & 24);
    float top = -1e30f;
    for (int j = begin; j < end; ++j) {
        float key[8], value[8], score = 0;
        eightOf(k + (size_t(j) * H + head) * D + part * 8, key);
        eightOf(v + (size_t(j) * H + head) * D + part * 8, value);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            score = fmaf(query[i], key[i], score);
        for (int lane = 4; lane > 0; lane /= 2)
            score += __shfl_xor_sync(mask, score, lane);
        const float above = fmaxf(top, score), scale = exp2f(top - above), weight = exp2f(score - above);
        top = above;
        total = fmaf(total, scale, weight);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            sum[i] = fmaf(weight, value[i], sum[i] * scale);
    }

    if (!there)
        return;
    const size_t at = (size_t(quarter) * T + token) * H + head;
#pragma unroll
    for (int i = 0; i < 8; ++i)
        sums[at * D + part * 8 + i] = sum[i];
    if (part == 0) {
        scales[at * 2] = top;
        scales[at * 2 + 1] = total;
    }
}
extern "C" __global__ __launch_bounds__(64) void unite(const float *sums, const float *scales, __half *out, int T, int H)
{
    const size_t token = size_t(blockIdx.x) * H + blockIdx.y, all = size_t(T) * H;
    float top = scales[token * 2];
    for (int i = 1; i < 4; ++i)
        top = fmaxf(top, scales[(i * all + token) * 2]);
    float sum = 0, total = 0;
    for (int i = 0; i < 4; ++i) {
        const float scale = exp2f(scales[(i * all + token) * 2] - top);
        total = fmaf(scale, scales[(i * all + token) * 2 + 1], total);
        sum = fmaf(scale, sums[(i * all + token) * D + threadIdx.x], sum);
    }
    out[token * D + threadIdx.x] = __float2half(sum / total);
}
