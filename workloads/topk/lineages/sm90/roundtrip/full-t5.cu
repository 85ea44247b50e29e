/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order. One block a row.
//
// Rows of at most 4096 elements in whole vectors, K no more than the threads that have elements: the row stays in
// registers, one histogram with bins of equal width in value between a guaranteed bound and the maximum, whose
// atomics give the places. All else, and what that histogram does not decide: digits of 8 bits of the keys.

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int COUNT = 8;                    // elements a thread
constexpr int BINS = 2 * THREADS;
constexpr unsigned FEW = 64;                // elements in the bin of the threshold that are ranked directly
constexpr unsigned ALL = 0xffffffff;

// The order of floats as that of signed integers, and back.
__device__ __forceinline__ int orderOf(float value)
{
    const int bits = __float_as_int(value);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

__device__ __forceinline__ float ofOrder(int order)
{
    return __int_as_float(order ^ ((order >> 31) & 0x7fffffff));
}

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

// Counts one more in the bin, if it is one of the window, and returns how many were there.
__device__ __forceinline__ unsigned claim(unsigned *bins, unsigned bin, unsigned last)
{
    unsigned number = 0;
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.le.u32 inside, %2, %3;\n"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n"
                 "}"
                 : "+r"(number)
                 : "r"(unsigned(__cvta_generic_to_shared(bins)) + 4 * bin), "r"(bin), "r"(last)
                 : "memory");
    return number;
}

// The inclusive sum over the lanes up to this one.
__device__ __forceinline__ unsigned scan(unsigned sum)
{
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
        asm volatile("{\n"
                     ".reg .u32 other;\n"
                     ".reg .pred inside;\n"
                     "shfl.sync.up.b32 other|inside, %0, %1, 0, 0xffffffff;\n"
                     "@inside add.u32 %0, %0, other;\n"
                     "}"
                     : "+r"(sum)
                     : "r"(step));
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) topk(const float *__restrict__ values,
                                                           float *__restrict__ topValues,
                                                           int *__restrict__ indices, int S, int K)
{
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ __align__(16) uint2 chosen[THREADS + FEW + 4];   // bits of the value and column
    __shared__ __align__(16) uint4 found;                       // bin, elements before it, elements in it
    __shared__ __align__(16) int2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ unsigned counters[2];

    const int tid = threadIdx.x;
    const unsigned lane = tid % 32, warp = tid / 32;
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;

    if (S % 4 == 0 && S <= THREADS * COUNT && K <= THREADS && K <= S / 4) {
        const float none = __uint_as_float(0xff800000u);        // -infinity, which is never counted below
        const float4 *from = reinterpret_cast<const float4 *>(row) + tid;
        const int mine = S / 4 - tid;                           // vectors of the row from this thread on
        float4 first = make_float4(none, none, none, none), other = first;
        if (mine > 0)
            first = __ldcs(from);
        if (mine > THREADS)
            other = __ldcs(from + THREADS);

        // While the row is under way.
        reinterpret_cast<uint2 *>(bins)[tid] = make_uint2(0, 0);
        if (tid == 0)
            found = make_uint4(0, 0, ALL, 0);                   // stays so, if fewer than K are counted

        const float value[COUNT] = {first.x, first.y, first.z, first.w, other.x, other.y, other.z, other.w};

        // The least of the maxima of at least K disjoint groups is no more than the K-th largest.
        const float most = fmaxf(fmaxf(fmaxf(value[0], value[1]), fmaxf(value[2], value[3])),
                                 fmaxf(fmaxf(value[4], value[5]), fmaxf(value[6], value[7])));
        const int order = orderOf(most);
        const int smallest = __reduce_min_sync(ALL, mine > 0 ? order : 0x7fffffff);
        const int largest = __reduce_max_sync(ALL, order);
        if (lane == 0)
            spans[warp] = make_int2(smallest, largest);
        __syncthreads();
        const int2 span = spans[lane % WARPS];
        const float bound = ofOrder(__reduce_min_sync(ALL, span.x));
        const float top = ofOrder(__reduce_max_sync(ALL, span.y));

        // Bins of equal width, the largest values first. Subtraction, fma and the bits of positive floats are
        // monotone. What is not a number, as from infinities, has large bits, and is not counted.
        const float range = top - bound;
        const float scale = __fdividef(1020.0f, range);
        const float base = 8388608.0f;                          // 2^23: the integer is in the low bits
        const unsigned zero = 0x4b000000u;                      // its bits
        const unsigned last = min(__float_as_uint(__fmaf_rn(range, scale, base)) - zero, unsigned(BINS - 1));
        unsigned bin[COUNT], place[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            bin[e] = __float_as_uint(__fmaf_rn(__fsub_rn(top, value[e]), scale, base)) - zero;
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            place[e] = claim(bins, bin[e], last);
        __syncthreads();

        // Where each bin begins, and the bin of the threshold.
        const uint2 pair = reinterpret_cast<const uint2 *>(bins)[tid];
        const unsigned sum = pair.x + pair.y;
        unsigned running = scan(sum);
        if (lane == 31)
            totals[warp] = running;
        __syncthreads();
        const unsigned total = totals[lane % WARPS];
        running += __reduce_add_sync(ALL, lane < warp ? total : 0u) - sum;
        const unsigned next = running + pair.x;
        if (unsigned(K) - 1 - running < pair.x)                 // running < K <= running + pair.x
            found = make_uint4(2 * tid, running, pair.x, 0);
        if (unsigned(K) - 1 - next < pair.y)
            found = make_uint4(2 * tid + 1, next, pair.y, 0);
        reinterpret_cast<uint2 *>(bins)[tid] = make_uint2(running, next);
        __syncthreads();

        const uint4 cut = found;
        if (cut.z <= FEW) {                                     // the same in all threads
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                place[e] += bins[min(bin[e], cut.x)];
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                if (bin[e] <= cut.x)
                    chosen[place[e]] =
                        make_uint2(__float_as_uint(value[e]), unsigned(4 * (tid + e / 4 * THREADS) + e % 4));
            __syncthreads();

            // What is above the bin is taken; those in the bin are ranked among each other.
            const unsigned sure = cut.y, limit = cut.y + cut.z;
#pragma unroll 1
            for (unsigned i = tid; i < limit; i += THREADS) {
                const uint2 element = chosen[i];
                const float own = __uint_as_float(element.x);
                unsigned to = i;
                if (i >= sure) {
                    to = sure;
#pragma unroll 1
                    for (unsigned j = sure; j < limit; j += 4) {
#pragma unroll
                        for (unsigned near = 0; near < 4; ++near) {
                            const float rival = __uint_as_float(chosen[j + near].x);
                            to += unsigned((j + near < limit) &
                                           ((rival > own) | ((rival == own) & (j + near < i))));
                        }
                    }
                }
                if (to < unsigned(K)) {
                    out[to] = own;
                    position[to] = int(element.y);
                }
            }
            return;
        }
    }

    // Any row: the K-th largest key digit by digit, with a pass over the row for each.
    unsigned threshold = 0, need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();                                        // bins and found have been read
        if (tid < 256)
            bins[tid] = 0;
        if (tid < 2)
            counters[tid] = 0;
        __syncthreads();
#pragma unroll 1
        for (int column = tid; column < S; column += THREADS) {
            const unsigned key = keyOf(row[column]);
            if (shift == 24 || ((key ^ threshold) >> (shift + 8)) == 0)
                atomicAdd(&bins[255 - ((key >> shift) & 255)], 1u);
        }
        __syncthreads();
        if (warp == 0) {                                        // 8 bins a lane, the largest digit first
            unsigned sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b)
                sum += bins[8 * lane + b];
            unsigned running = scan(sum) - sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                const unsigned count = bins[8 * lane + b];
                if (need - 1 - running < count)                 // running < need <= running + count
                    found = make_uint4(8 * lane + b, running, count, 0);
                running += count;
            }
        }
        __syncthreads();
        const uint4 cut = found;
        threshold |= (255 - cut.x) << shift;
        need -= cut.y;
    }

    // All that are larger, and of the equal ones as many as are missing.
    const unsigned sure = unsigned(K) - need;
#pragma unroll 1
    for (int column = tid; column < S; column += THREADS) {
        const float value = row[column];
        const unsigned key = keyOf(value);
        unsigned to = ALL;
        if (key > threshold)
            to = atomicAdd(&counters[0], 1u);
        else if (key == threshold)
            to = sure + atomicAdd(&counters[1], 1u);
        if (to < unsigned(K)) {
            out[to] = value;
            position[to] = column;
        }
    }
}
