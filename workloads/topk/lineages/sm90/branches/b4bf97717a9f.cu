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
// One block a row, which stays in registers: four keys a thread, read once. The K-th largest key is found by digits
// of 8 bits from the top: the keys that share the digits found so far are counted by their next digit in shared
// memory, and one warp finds the digit that holds the K-th largest. What is larger is taken, and as many of the ties
// as are missing.

constexpr int THREADS = 1024;
constexpr int DIGITS = 256; // values of a digit; the counts of the four rounds are one a thread

// The order of floats as that of unsigned integers. 0 is below all of them, and stands for no element.
__device__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

// By the first warp: the digit of the need-th largest of the counted keys. choice becomes the threshold with that
// digit, and how many keys of the digit are needed. If that is all of them, it is the threshold just below them, and 0.
__device__ __forceinline__ void choose(
    const unsigned *counts, unsigned threshold, int shift, unsigned need, uint2 *choice)
{
    const unsigned lane = threadIdx.x;
    const unsigned first = 8 * (31 - lane); // lower lanes have higher digits
    const uint4 low = *reinterpret_cast<const uint4 *>(counts + first);
    const uint4 high = *reinterpret_cast<const uint4 *>(counts + first + 4);
    const unsigned count[8] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };

    // Keys of this lane and of all below, by steps of radix 4, 4 and 2.
    const unsigned total = (low.x + low.y + low.z) + (low.w + high.x + high.y) + (high.z + high.w);
    unsigned upTo = total;
#pragma unroll
    for (unsigned step = 1; step <= 4; step *= 4) {
        const unsigned one = __shfl_up_sync(0xffffffff, upTo, step);
        const unsigned two = __shfl_up_sync(0xffffffff, upTo, 2 * step);
        const unsigned three = __shfl_up_sync(0xffffffff, upTo, 3 * step);
        upTo += lane >= step ? one : 0u;
        upTo += lane >= 2 * step ? two : 0u;
        upTo += lane >= 3 * step ? three : 0u;
    }
    const unsigned half = __shfl_up_sync(0xffffffff, upTo, 16);
    upTo += lane >= 16 ? half : 0u;

    unsigned sum[9]; // keys of this lane at or above each of its digits
    sum[8] = 0;
#pragma unroll
    for (int j = 7; j >= 0; --j)
        sum[j] = sum[j + 1] + count[j];

    const unsigned before = upTo - total;
    if (before < need && upTo >= need) {
        const unsigned rank = need - before;
        unsigned digit = first, size = 0, larger = 0;
#pragma unroll
        for (int j = 0; j < 8; ++j)
            if (sum[j] >= rank) {
                digit = first + j;
                size = count[j];
                larger = sum[j + 1];
            }
        const unsigned left = rank - larger;
        const bool all = left == size;
        *choice = make_uint2((threshold | digit << shift) - (all ? 1u : 0u), all ? 0u : left);
    }
}

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ __align__(16) unsigned counts[4 * DIGITS]; // candidates of each digit, by round
    __shared__ uint2 choice;
    __shared__ unsigned above, ties;
    const int tid = threadIdx.x;
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
    counts[tid] = 0;
    if (tid == 0)
        above = ties = 0;
    __syncthreads();
    unsigned key[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        key[e] = keyOf(value[e]);

    unsigned threshold = 0, mask = 0, need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        unsigned *const round = counts + DIGITS / 8 * shift;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if ((key[e] & mask) == threshold)
                atomicAdd(&round[key[e] >> shift & 255u], 1u);
        __syncthreads();
        if (tid < 32)
            choose(round, threshold, shift, need, &choice);
        __syncthreads();
        threshold = choice.x;
        need = choice.y;
        if (need == 0)
            break;
        mask = 0xffffffffu << shift;
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
    __shared__ __align__(16) unsigned counts[4 * DIGITS]; // candidates of each digit, by round
    __shared__ uint2 choice;
    __shared__ unsigned above, ties;
    const int tid = threadIdx.x;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    counts[tid] = 0;
    if (tid == 0)
        above = ties = 0;
    __syncthreads();

    unsigned threshold = 0, mask = 0, need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        unsigned *const round = counts + DIGITS / 8 * shift;
        for (int column = tid; column < S; column += THREADS) {
            const unsigned key = keyOf(values[column]);
            if ((key & mask) == threshold)
                atomicAdd(&round[key >> shift & 255u], 1u);
        }
        __syncthreads();
        if (tid < 32)
            choose(round, threshold, shift, need, &choice);
        __syncthreads();
        threshold = choice.x;
        need = choice.y;
        if (need == 0)
            break;
        mask = 0xffffffffu << shift;
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
