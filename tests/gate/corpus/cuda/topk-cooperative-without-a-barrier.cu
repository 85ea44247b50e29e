/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
cooperative = true
grid = ["min(B, sm_count)"]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K", "int B"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// All rows by blocks that are resident at once, and that never meet: the cut two bits at a time.
#define PAIRS 16

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

// How many of the row are at least `key`.
__device__ int countFrom(const float *row, int S, unsigned key)
{
    __shared__ int total;
    __syncthreads();
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    int mine = 0;
    for (int i = threadIdx.x; i < S; i += blockDim.x)
        mine += keyOf(row[i]) >= key ? 1 : 0;
    mine = __reduce_add_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, mine);
    __syncthreads();
    return total;
}

// How many of the row are at least `key`, one and two and three steps above it, in one pass: the digit of two bits that the K-th largest has.
__device__ unsigned digitOf(const float *row, int S, int K, unsigned key, int shift)
{
    __shared__ int totals[3];
    __syncthreads();
    if (threadIdx.x < 3)
        totals[threadIdx.x] = 0;
    __syncthreads();
    int mine[3] = {};
    for (int i = threadIdx.x; i < S; i += blockDim.x) {
        const unsigned is = keyOf(row[i]);
        for (unsigned t = 0; t < 3; ++t)
            mine[t] += is >= (key | (t + 1) << shift) ? 1 : 0;
    }
    for (int t = 0; t < 3; ++t) {
        mine[t] = __reduce_add_sync(0xffffffffu, mine[t]);
        if (threadIdx.x % 32 == 0)
            atomicAdd(&totals[t], mine[t]);
    }
    __syncthreads();
    return (totals[0] >= K) + (totals[1] >= K) + (totals[2] >= K);
}

// The K-th largest, bit by bit, and the last ones two at a time.
__device__ unsigned cutOf(const float *row, int S, int K)
{
    unsigned found = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 2 * PAIRS; --bit) {
        const unsigned next = found | (1u << bit);
        if (countFrom(row, S, next) >= K)
            found = next;
    }
#pragma unroll 1
    for (int pair = PAIRS - 1; pair >= 0; --pair)
        found |= digitOf(row, S, K, found, 2 * pair) << 2 * pair;
    return found;
}

// What is above the cut, then as many of those that equal it as there is room for.
__device__ void writeFrom(const float *row, float *top, int *indices, int S, int K, unsigned cut)
{
    __shared__ int next;
    __syncthreads();
    if (threadIdx.x == 0)
        next = 0;
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = threadIdx.x; i < S; i += blockDim.x) {
            const float value = row[i];
            const unsigned key = keyOf(value);
            if (pass == 0 ? key <= cut : key != cut)
                continue;
            const int at = atomicAdd(&next, 1);
            if (at < K) {
                top[at] = value;
                indices[at] = i;
            }
        }
        __syncthreads();
    }
}

extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int S, int K, int B)
{
    for (int r = blockIdx.x; r < B; r += gridDim.x) {
        const float *row = values + size_t(r) * S;
        writeFrom(row, top + size_t(r) * K, indices + size_t(r) * K, S, K, cutOf(row, S, K));
    }
}
