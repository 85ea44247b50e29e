/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = [512]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]

[[launch]]
kernel = "topk"
when = "B < 0"
grid = [1]
block = [512]
args = ["values", "top_values", "indices", "int B", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// What thresholds-of-the-neighbour-in-shared does where it is honest: the threshold of its own row, bit by bit. Its second launch never happens.

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
    for (int lane = 16; lane > 0; lane /= 2)
        mine += __shfl_xor_sync(0xffffffffu, mine, lane);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, mine);
    __syncthreads();
    return total;
}

extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int B, int S, int K)
{
    __shared__ int next;
    if (blockIdx.x >= B)
        return;
    const float *row = values + size_t(blockIdx.x) * S;
    top += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    unsigned threshold = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned higher = threshold | (1u << bit);
        if (countFrom(row, S, higher) >= K)
            threshold = higher;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        next = 0;
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) { // what equals the threshold comes after what is above it
        for (int i = threadIdx.x; i < S; i += blockDim.x) {
            const unsigned key = keyOf(row[i]);
            if (pass == 0 ? key <= threshold : key != threshold)
                continue;
            const int at = atomicAdd(&next, 1);
            if (at < K) {
                top[at] = row[i];
                indices[at] = i;
            }
        }
        __syncthreads();
    }
}
