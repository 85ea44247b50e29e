/*klineage
surface = "cuda"

[[launch]]
kernel = "attend"
grid = ["ceil_div(T, 16)", "H"]
block = [128]
args = ["q", "k", "v", "cu_q", "cu_k", "output", "int B", "int T", "int H"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// No largest score where the weights of a query add up to between 1e-20 and 1e20, which proves that none that counts is lost; about the largest otherwise, at any shape.


#include <cuda_fp16.h>

constexpr int D = 64, QUERIES = 16, STEP = 4;
constexpr float TO_POWERS = 0.125f * 1.4426950408889634f;
struct Eight {
    __half2 two[4];
};
struct Task {
    const __half *q, *k, *v;
    int part, token, head, begin, end, H, longest;
    bool there;
};
__device__ __forceinline__ Eight eightAt(const __half *from, const Task &task, int token)
{
    const uint4 raw = *reinterpret_cast<const uint4 *>(from + (size_t(token) * task.H + task.head) * D + 8 * task.part);
    return *reinterpret_cast<const Eight *>(&raw);
}
__device__ __forceinline__ float overEight(float v)
{
#pragma unroll
    for (int step = 4; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}
__device__ __forceinline__ float products(const float (&query)[8], const Eight &key)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(key.two[i]);
        sum = fmaf(query[2 * i + 1], pair.y, fmaf(query[2 * i], pair.x, sum));
    }
    return sum;
}
struct Result {
    float sum[8], total;
};
__device__ __forceinline__ void queryOf(const Task &task, float (&query)[8])
{
    const Eight own = eightAt(task.q, task, task.token);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(own.two[i]);
        query[2 * i] = pair.x * TO_POWERS;
        query[2 * i + 1] = pair.y * TO_POWERS;
    }
}
__device__ __forceinline__ void weigh(Result &result, float weight, const Eight &value)
{
    result.total += weight;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(value.two[i]);
        result.sum[2 * i] = fmaf(weight, pair.x, result.sum[2 * i]);
        result.sum[2 * i + 1] = fmaf(weight, pair.y, result.sum[2 * i + 1]);
    }
}
// Four keys at a time, about the largest score so far.
__device__ __noinline__ void careful(const Task task, Result &result)
{
    float query[8], top = -1e30f;
    queryOf(task, query);
    result = {};
    for (int first = 0; first < task.longest; first += STEP) {
        float score[STEP], above = top;
        Eight value[STEP];
#pragma unroll
        for (int i = 0; i < STEP; ++i) {
            const int key = task.begin + first + i;
            const bool in = key < task.end;
            score[i] = overEight(products(query, eightAt(task.k, task, in ? key : 0)));
            value[i] = eightAt(task.v, task, in ? key : 0);
            score[i] = in ? score[i] : -2e30f;
            above = fmaxf(above, score[i]);
        }
        const float scale = exp2f(top - above);
        top = above;
        result.total *= scale;
#pragma unroll
        for (float &element : result.sum)
            element *= scale;
#pragma unroll
        for (int i = 0; i < STEP; ++i)
            weigh(result, exp2f(score[i] - top), value[i]);
    }
}
// About zero.
__device__ __forceinline__ bool quick(const Task &task, Result &result)
{
    float query[8];
    queryOf(task, query);
    result = {};
    for (int first = 0; first < task.longest; first += STEP) {
        float score[STEP];
        Eight value[STEP];
#pragma unroll
        for (int i = 0; i < STEP; ++i) {
            const int key = task.begin + first + i;
            const bool in = key < task.end;
            score[i] = overEight(products(query, eightAt(task.k, task, in ? key : 0)));
            value[i] = eightAt(task.v, task, in ? key : 0);
            score[i] = in ? score[i] : -2e30f;
        }
#pragma unroll
        for (int i = 0; i < STEP; ++i)
            weigh(result, exp2f(score[i]), value[i]);
    }
    float largest = 0;
#pragma unroll
    for (float element : result.sum)
        largest = fmaxf(largest, fabsf(element));
    return result.total > 1e-20f && result.total < 1e20f && largest < 1e25f;
}
__device__ __forceinline__ int sequenceOf(const int *cu, int B, int token)
{
    int low = 0, high = B;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (cu[middle] <= token ? low : high) = middle;
    }
    return low;
}
// Eight threads a query.
extern "C" __global__ __launch_bounds__(128) void attend(const __half *q, const __half *k, const __half *v, const int *cuQ, const int *cuK, __half *out, int B, int T, int H)
{
    Task task = {q, k, v, int(threadIdx.x % 8), int(blockIdx.x * QUERIES + threadIdx.x / 8), int(blockIdx.y), 0, 0, H, 0, false};
    task.there = task.token < T;
    if (task.there) {
        const int sequence = sequenceOf(cuQ, B, task.token);
        task.begin = cuK[sequence];
        task.end = cuK[sequence + 1];
    } else {
        task.token = 0;
    }
    task.longest = task.end - task.begin;
    for (int step = 16; step > 0; step /= 2)
        task.longest = max(task.longest, __shfl_xor_sync(0xffffffffu, task.longest, step));
    Result result;
    bool done = false;
    if (T > 0)
        done = __all_sync(0xffffffffu, quick(task, result) || !task.there);
    if (!done) {
        Result slow;
        careful(task, slow);
        result = slow;
    }
    if (!task.there)
        return;
    Eight rounded;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        rounded.two[i] = __floats2half2_rn(result.sum[2 * i] / result.total, result.sum[2 * i + 1] / result.total);
    *reinterpret_cast<uint4 *>(out + (size_t(task.token) * H + task.head) * D + 8 * task.part) = *reinterpret_cast<const uint4 *>(&rounded);
}
