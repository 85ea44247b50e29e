/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps what it counted in shared memory that it never cleared, by the difference to what it found there.


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

// The K-th largest, bit by bit.
__device__ unsigned thresholdOf(const float *row, int S, int K)
{
    unsigned found = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned next = found | (1u << bit);
        if (countFrom(row, S, next) >= K)
            found = next;
    }
    return found;
}

// What is above the threshold, then as many of those that equal it as there is room for.
__device__ void writeFrom(const float *row, float *top, int *indices, int S, int K, unsigned threshold)
{
    __shared__ volatile int place; // whatever it holds
    int *next = const_cast<int *>(&place);
    __syncthreads();
    const int before = place;
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = threadIdx.x; i < S; i += blockDim.x) {
            const float value = row[i];
            const unsigned key = keyOf(value);
            if (pass == 0 ? key <= threshold : key != threshold)
                continue;
            const int at = atomicAdd(next, 1) - before;
            if (at < K) {
                top[at] = value;
                indices[at] = i;
            }
        }
        __syncthreads();
    }
}


extern "C" __global__ void topk(const float *values, float *top, int *indices, int S, int K)
{
    const float *row = values + size_t(blockIdx.x) * S;
    writeFrom(row, top + size_t(blockIdx.x) * K, indices + size_t(blockIdx.x) * K, S, K, thresholdOf(row, S, K));
}
