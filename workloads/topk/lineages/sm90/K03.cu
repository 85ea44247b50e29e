/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
when = "S <= 4096"
grid = ["B"]
block = ["1024"]
args = ["values", "top_values", "indices", "int S", "int K"]

[[launch]]
kernel = "topk_any"
when = "S > 4096"
grid = ["B"]
block = ["1024"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// One block a row, which stays in registers: four keys a thread, read once. The K-th largest key is found bit by bit
// from the top: a bit is set when at least K keys are no smaller then. What is larger is taken, and as many of the
// ties as are missing.

constexpr int THREADS = 1024;

// The order of floats as that of unsigned integers. 0 is below all of them, and stands for no element.
__device__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ unsigned counts[32]; // keys at or above the trial of each bit
    __shared__ unsigned above, ties;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;

    // What lies past the end keeps the bits of key 0.
    float value[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        value[e] = __uint_as_float(0xffffffff);
    if (S % 4 == 0) {
        if (4 * tid < S)
            *reinterpret_cast<float4 *>(value) = *reinterpret_cast<const float4 *>(values + 4 * tid);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (4 * tid + e < S)
                value[e] = values[4 * tid + e];
    }
    if (tid < 32)
        counts[tid] = 0;
    if (tid == 0)
        above = ties = 0;
    __syncthreads();
    unsigned key[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        key[e] = keyOf(value[e]);

    unsigned threshold = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned trial = threshold | 1u << bit;
        unsigned count = 0;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            count += key[e] >= trial;
        count = __reduce_add_sync(0xffffffff, count);
        if (lane == 0)
            atomicAdd(&counts[bit], count);
        __syncthreads();
        if (counts[bit] >= K)
            threshold = trial;
    }

#pragma unroll
    for (int e = 0; e < 4; ++e)
        if (key[e] > threshold) {
            const unsigned place = atomicAdd(&above, 1);
            topValues[place] = value[e];
            indices[place] = 4 * tid + e;
        }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 4; ++e)
        if (key[e] == threshold) {
            const unsigned place = above + atomicAdd(&ties, 1);
            if (place < K) {
                topValues[place] = value[e];
                indices[place] = 4 * tid + e;
            }
        }
}

// Rows of any length.
extern "C" __global__ __launch_bounds__(THREADS) void topk_any(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ unsigned counts[32]; // keys at or above the trial of each bit
    __shared__ unsigned above, ties;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    if (tid < 32)
        counts[tid] = 0;
    if (tid == 0)
        above = ties = 0;
    __syncthreads();

    unsigned threshold = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned trial = threshold | 1u << bit;
        unsigned count = 0;
        for (int column = tid; column < S; column += THREADS)
            count += keyOf(values[column]) >= trial;
        count = __reduce_add_sync(0xffffffff, count);
        if (lane == 0)
            atomicAdd(&counts[bit], count);
        __syncthreads();
        if (counts[bit] >= K)
            threshold = trial;
    }

    for (int column = tid; column < S; column += THREADS)
        if (keyOf(values[column]) > threshold) {
            const unsigned place = atomicAdd(&above, 1);
            topValues[place] = values[column];
            indices[place] = column;
        }
    __syncthreads();
    for (int column = tid; column < S; column += THREADS)
        if (keyOf(values[column]) == threshold) {
            const unsigned place = above + atomicAdd(&ties, 1);
            if (place < K) {
                topValues[place] = values[column];
                indices[place] = column;
            }
        }
}
