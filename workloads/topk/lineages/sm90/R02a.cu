/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["256"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// One block a row. The K-th largest key is found bit by bit from the top: a bit is set when at least K keys are
// no smaller then. What is no smaller than that key is taken.

constexpr int THREADS = 256;

// The order of floats as that of unsigned integers.
__device__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ unsigned counts[32]; // keys at or above the trial of each bit
    __shared__ unsigned above;
    const int tid = threadIdx.x, lane = threadIdx.x % 32u;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    if (tid < 32)
        counts[tid] = 0;
    if (tid == 0)
        above = 0;
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
        if (keyOf(values[column]) >= threshold) {
            const unsigned place = atomicAdd(&above, 1);
            topValues[place] = values[column];
            indices[place] = column;
        }
}
