/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Counts by votes: a warp asks all of its lanes at once, and adds up how many said yes.
typedef unsigned long long u64;


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
    for (int begin = threadIdx.x - threadIdx.x % 32; begin < S; begin += blockDim.x) {
        const int i = begin + threadIdx.x % 32;
        mine += __popc(__ballot_sync(0xffffffffu, i < S && keyOf(row[i]) >= key));
    }
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, mine);
    __syncthreads();
    return total;
}

// The K-th largest, bit by bit.
__device__ unsigned cutOf(const float *row, int S, int K)
{
    unsigned found = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned next = found | (1u << bit);
        if (countFrom(row, S, next) >= K)
            found = next;
    }
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


extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int S, int K)
{
    const float *row = values + size_t(blockIdx.x) * S;
    top += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    unsigned cut = cutOf(row, S, K);
    writeFrom(row, top, indices, S, K, cut);
}
