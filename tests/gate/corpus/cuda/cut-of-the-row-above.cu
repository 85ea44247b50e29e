/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["ceil_div(B, 2)"]
block = [512]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two rows a block. The cut of the first is a guess at that of the second, which counts how far off it is and goes on from there, over the bits that can still differ.
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

__device__ unsigned countFrom(const float *row, int S, unsigned from)
{
    unsigned mine = 0;
    for (int i = threadIdx.x; i < S; i += 512)
        mine += orderOf(row[i]) >= from;
    return blockSum(mine);
}

// Between two orders, of which the first has at least K from it on and the other fewer.
__device__ unsigned cutBetween(const float *row, int S, int K, unsigned low, unsigned high)
{
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;
        if (countFrom(row, S, middle) >= K)
            low = middle;
        else
            high = middle;
    }
    return low;
}

extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int B, int S, int K)
{
    unsigned guess = 0;
    for (int r = 2 * blockIdx.x; r < B && r < 2 * int(blockIdx.x) + 2; ++r) {
        const float *row = values + size_t(r) * S;
        unsigned low = 0, high = 0xffffffffu;
        if (guess != 0) {
            const unsigned width = 1u << 18;
            const unsigned below = guess > width ? guess - width : 0, above = guess < high - width ? guess + width : high;
            if (countFrom(row, S, below) >= K)
                low = below;
            else
                high = below;
            if (low == below && above < high) {
                if (countFrom(row, S, above) >= K)
                    low = above;
                else
                    high = above;
            }
        }
        guess = cutBetween(row, S, K, low, high);
        writeChosen(row, top + size_t(r) * K, indices + size_t(r) * K, S, K, guess);
    }
}
