/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["1024"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// One block a row. The row is read once, 16 bytes a load, and its keys stay in registers, four a thread; what a
// row has beyond that is read again by each pass.
//
// The K-th largest key is found bit by bit from the top: a bit is set when at least K keys are
// no smaller then. What is larger is taken, and as many of the ties as are missing.

constexpr int THREADS = 1024;
constexpr int KEYS = 4;             // of a thread, in registers
constexpr int HELD = THREADS * KEYS; // columns of a row that are in registers

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

// The float of a key.
__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(int(~key) >> 31) | 0x80000000u));
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

    // Columns first to first + 3. A key of 0 stands for a column past the end: no trial is as small.
    const int first = tid * KEYS;
    unsigned keys[KEYS];
    if (first + KEYS <= S && (reinterpret_cast<size_t>(values) & 15) == 0) {
        const float4 quad = *reinterpret_cast<const float4 *>(values + first);
        keys[0] = keyOf(quad.x);
        keys[1] = keyOf(quad.y);
        keys[2] = keyOf(quad.z);
        keys[3] = keyOf(quad.w);
    } else {
#pragma unroll
        for (int i = 0; i < KEYS; ++i)
            keys[i] = first + i < S ? keyOf(values[first + i]) : 0u;
    }

    if (tid < 32)
        counts[tid] = 0;
    if (tid == 0)
        above = ties = 0;
    __syncthreads();

    unsigned threshold = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned trial = threshold | 1u << bit;
        unsigned count = 0;
#pragma unroll
        for (int i = 0; i < KEYS; ++i)
            count += keys[i] >= trial;
        for (int column = HELD + tid; column < S; column += THREADS)
            count += keyOf(values[column]) >= trial;
        count = __reduce_add_sync(0xffffffff, count);
        if (lane == 0)
            atomicAdd(&counts[bit], count);
        __syncthreads();
        if (counts[bit] >= K)
            threshold = trial;
    }

#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        if (keys[i] > threshold) {
            const unsigned place = atomicAdd(&above, 1);
            topValues[place] = valueOf(keys[i]);
            indices[place] = first + i;
        }
    for (int column = HELD + tid; column < S; column += THREADS)
        if (keyOf(values[column]) > threshold) {
            const unsigned place = atomicAdd(&above, 1);
            topValues[place] = values[column];
            indices[place] = column;
        }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < KEYS; ++i)
        if (keys[i] == threshold && first + i < S) {
            const unsigned place = above + atomicAdd(&ties, 1);
            if (place < K) {
                topValues[place] = valueOf(keys[i]);
                indices[place] = first + i;
            }
        }
    for (int column = HELD + tid; column < S; column += THREADS)
        if (keyOf(values[column]) == threshold) {
            const unsigned place = above + atomicAdd(&ties, 1);
            if (place < K) {
                topValues[place] = values[column];
                indices[place] = column;
            }
        }
}
