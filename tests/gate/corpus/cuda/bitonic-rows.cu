/*klineage
surface = "cuda"

[[launch]]
kernel = "sorts"
when = "S <= 8192"
grid = ["B"]
block = [1024]
shared = "8 * pow2_ceil(S)"
args = ["values", "top_values", "indices", "int S", "int K", "int pow2_ceil(S)"]

[[launch]]
kernel = "topk"
when = "S > 8192"
grid = ["B"]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts whole rows by a bitonic network in shared memory where they fit, with the columns in the lower half of the keys.
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
    __shared__ int next;
    __syncthreads();
    if (threadIdx.x == 0)
        next = 0;
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = threadIdx.x; i < S; i += blockDim.x) {
            const float value = row[i];
            const unsigned key = keyOf(value);
            if (pass == 0 ? key <= threshold : key != threshold)
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


extern "C" __global__ __launch_bounds__(1024) void sorts(const float *values, float *top, int *indices, int S, int K, int length)
{
    extern __shared__ u64 keys[];
    const float *row = values + size_t(blockIdx.x) * S;
    for (int i = threadIdx.x; i < length; i += 1024)
        keys[i] = i < S ? u64(keyOf(row[i])) << 32 | unsigned(~i) : 0;
    __syncthreads();
    for (int size = 2; size <= length; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            for (int i = threadIdx.x; i < length / 2; i += 1024) {
                const int a = i / step * 2 * step + i % step, b = a + step;
                const bool down = (a & size) == 0;
                const u64 p = keys[a], q = keys[b];
                if ((p < q) == down) {
                    keys[a] = q;
                    keys[b] = p;
                }
            }
            __syncthreads();
        }
    for (int i = threadIdx.x; i < K; i += 1024) {
        const int column = ~unsigned(keys[i]);
        top[size_t(blockIdx.x) * K + i] = row[column];
        indices[size_t(blockIdx.x) * K + i] = column;
    }
}
extern "C" __global__ void topk(const float *values, float *top, int *indices, int S, int K)
{
    const float *row = values + size_t(blockIdx.x) * S;
    writeFrom(row, top + size_t(blockIdx.x) * K, indices + size_t(blockIdx.x) * K, S, K, thresholdOf(row, S, K));
}
