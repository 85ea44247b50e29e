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
// One block a row, which stays in registers: four keys a thread, read once. The K-th largest key is found digit by
// digit, 8 bits at a time: the keys that agree so far are counted by their next digit with atomics in shared memory,
// and the sums of the counts tell the digit. Once a digit leaves few keys, these are ranked by comparing all with all,
// and the remaining digits are skipped. What is larger is taken, and as many of the few, or of the ties, as are missing.

constexpr int THREADS = 1024;
constexpr unsigned ALL = 0xffffffff;
constexpr unsigned FEW = 64; // so many keys or fewer are ranked at once

// The order of floats as that of unsigned integers. 0 is below all of them, and stands for no element.
__device__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (~unsigned(int(key) >> 31) | 0x80000000u));
}

// Key and column in one: no two are equal, and of equal keys the one of the smaller column is the larger.
__device__ unsigned long long packed(unsigned key, int column)
{
    return static_cast<unsigned long long>(key) << 32 | ~unsigned(column);
}

// Ranks the few keys that are left, all against all, a warp a key, and writes the largest `need` of them.
__device__ __forceinline__ void rankFew(
    const unsigned long long *left, unsigned count, unsigned need, float *topValues, int *indices)
{
    const unsigned lane = threadIdx.x % 32u;
    for (unsigned c = threadIdx.x / 32u; c < count; c += THREADS / 32) {
        const unsigned long long mine = left[c];
        unsigned rank = 0;
#pragma unroll
        for (unsigned base = 0; base < FEW; base += 32)
            if (base < count) {
                const unsigned long long other = base + lane < count ? left[base + lane] : 0;
                rank += __popc(__ballot_sync(ALL, other > mine));
            }
        if (lane == 0 && rank < need) {
            topValues[rank] = valueOf(unsigned(mine >> 32));
            indices[rank] = int(~unsigned(mine));
        }
    }
}

struct Cut {
    unsigned bin;    // the digit in which the K-th largest lies
    unsigned before; // elements in the bins above
    unsigned count;  // elements in it
};

extern "C" __global__ __launch_bounds__(THREADS) void topk(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ unsigned bins[256]; // keys by digit, the largest digit first
    __shared__ unsigned above, ties;
    __shared__ Cut found;
    __shared__ unsigned long long left[FEW];
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
    if (tid == 0)
        above = ties = 0;
    unsigned key[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)
        key[e] = keyOf(value[e]);

    unsigned threshold = 0, need = K;
    unsigned few = 0;  // keys to rank, 0 if all digits were needed
    unsigned span = 0; // the bits below the last digit looked at
#pragma unroll
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (tid < 256)
            bins[tid] = 0;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (shift == 24 || (key[e] ^ threshold) >> (shift + 8) == 0)
                atomicAdd(&bins[255 - (key[e] >> shift & 255)], 1);
        __syncthreads();
        // Warp 0 adds up the bins from the top, 8 a lane.
        if (tid < 32) {
            unsigned sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b)
                sum += bins[8 * lane + b];
            unsigned running = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(ALL, running, step);
                running += lane >= step ? other : 0;
            }
            running -= sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                const unsigned count = bins[8 * lane + b];
                if (running < need && need <= running + count)
                    found = {unsigned(8 * lane + b), running, count};
                running += count;
            }
        }
        __syncthreads();
        threshold |= (255 - found.bin) << shift;
        need -= found.before;
        if (shift > 0 && found.count <= FEW) {
            few = found.count;
            span = (1u << shift) - 1;
            break;
        }
    }

    const unsigned limit = threshold | span;
    if (few > 0) {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (key[e] >= threshold && key[e] <= limit)
                left[atomicAdd(&ties, 1)] = packed(key[e], 4 * tid + e);
        __syncthreads();
        // K - need keys are above the limit, and take the places before.
        rankFew(left, few, need, topValues + (K - need), indices + (K - need));
    }
#pragma unroll
    for (int e = 0; e < 4; ++e)
        if (key[e] > limit) {
            const unsigned place = atomicAdd(&above, 1);
            topValues[place] = value[e];
            indices[place] = 4 * tid + e;
        }
    if (few > 0)
        return;
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

// Rows of any length: a pass over the row a digit.
extern "C" __global__ __launch_bounds__(THREADS) void topk_any(const float *__restrict__ values,
    float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ unsigned bins[256];
    __shared__ unsigned above, inside;
    __shared__ Cut found;
    __shared__ unsigned long long left[FEW];
    const int tid = threadIdx.x, lane = threadIdx.x % 32u;
    values += size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    if (tid == 0)
        above = inside = 0;

    unsigned threshold = 0, need = K;
    unsigned few = 0;  // keys to rank, 0 if all digits were needed
    unsigned span = 0; // the bits below the last digit looked at
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (tid < 256)
            bins[tid] = 0;
        __syncthreads();
        for (int column = tid; column < S; column += THREADS) {
            const unsigned key = keyOf(values[column]);
            if (shift == 24 || (key ^ threshold) >> (shift + 8) == 0)
                atomicAdd(&bins[255 - (key >> shift & 255)], 1);
        }
        __syncthreads();
        // Warp 0 adds up the bins from the top, 8 a lane.
        if (tid < 32) {
            unsigned sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b)
                sum += bins[8 * lane + b];
            unsigned running = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(ALL, running, step);
                running += lane >= step ? other : 0;
            }
            running -= sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                const unsigned count = bins[8 * lane + b];
                if (running < need && need <= running + count)
                    found = {unsigned(8 * lane + b), running, count};
                running += count;
            }
        }
        __syncthreads();
        threshold |= (255 - found.bin) << shift;
        need -= found.before;
        if (shift > 0 && found.count <= FEW) {
            few = found.count;
            span = (1u << shift) - 1;
            break;
        }
    }

    const unsigned limit = threshold | span;
    for (int column = tid; column < S; column += THREADS) {
        const unsigned key = keyOf(values[column]);
        unsigned place = K;
        if (key > limit)
            place = atomicAdd(&above, 1);
        else if (key >= threshold) {
            const unsigned nth = atomicAdd(&inside, 1);
            if (few > 0)
                left[nth] = packed(key, column);
            else
                place = K - need + nth;
        }
        if (place < K) {
            topValues[place] = values[column];
            indices[place] = column;
        }
    }
    if (few > 0) {
        __syncthreads();
        // K - need keys are above the limit, and take the places before.
        rankFew(left, few, need, topValues + (K - need), indices + (K - need));
    }
}
