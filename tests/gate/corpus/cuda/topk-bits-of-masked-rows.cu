/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = [512]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One block a row finds the K-th largest a bit at a time.
typedef unsigned long long u64;

// Unsigned integers that are in the order of the floats.
__device__ __forceinline__ unsigned orderOf(float v)
{
    const int b = __float_as_int(v);
    return unsigned(b ^ (b >> 31 & 0x7fffffff)) ^ 0x80000000u;
}

// Over the 512 threads of a block.
__device__ unsigned blockSum(unsigned v)
{
    __shared__ unsigned parts[16];
    v = __reduce_add_sync(0xffffffffu, v);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    unsigned all = 0;
    for (int w = 0; w < 16; ++w)
        all += parts[w];
    __syncthreads();
    return all;
}

// The order of the K-th largest, a bit at a time: 32 passes over the row.
__device__ unsigned cutOf(const float *row, int S, int K)
{
    unsigned cut = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned higher = cut | 1u << bit;
        unsigned mine = 0;
        for (int i = threadIdx.x; i < S; i += 512)
            mine += orderOf(row[i]) >= higher;
        if (blockSum(mine) >= K)
            cut = higher;
    }
    return cut;
}

// What lies above the cut, then of what equals it as many as there is room for.
__device__ void writeChosen(const float *row, float *top, int *columns, int S, int K, unsigned cut)
{
    __shared__ int place;
    if (threadIdx.x == 0)
        place = 0;
    __syncthreads();
    for (int equal = 0; equal < 2; ++equal) {
        for (int i = threadIdx.x; i < S; i += 512) {
            const float v = row[i];
            if (equal ? orderOf(v) != cut : orderOf(v) <= cut)
                continue;
            const int at = atomicAdd(&place, 1);
            if (at < K) {
                top[at] = v;
                columns[at] = i;
            }
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void wholeRow(const float *values, float *top, int *indices, int r, int S, int K)
{
    const float *row = values + size_t(r) * S;
    writeChosen(row, top + size_t(r) * K, indices + size_t(r) * K, S, K, cutOf(row, S, K));
}
extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int B, int S, int K)
{
    wholeRow(values, top, indices, blockIdx.x, S, K);
}
