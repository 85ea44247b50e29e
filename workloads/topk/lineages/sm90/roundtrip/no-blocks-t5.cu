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
// The K largest of each row of S floats with their columns, in any order.
//
// One block a row. Rows of up to 4096 elements stay in registers, 8 a thread. A histogram with bins that are linear in
// the value covers the range from a lower bound of the threshold to the maximum. What its atomics return is the place
// of an element in its bin, and the scan over the bins tells where that begins. Only the bin that holds the threshold
// needs a ranking. Its size is checked: when it is large, or the range is not suitable, or the row is of another
// shape, the threshold is found exactly by digits of 8 bits.

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int COUNT = 8;                        // elements a thread
constexpr int BINS = 2 * THREADS;               // two a thread
constexpr unsigned FEW = 64;                    // elements in the bin of the threshold that are ranked directly
constexpr unsigned ALL = 0xffffffff;

// Unsigned integers in the order of the floats.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

__device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

// The two largest of two disjoint groups, of which the two largest are known.
__device__ __forceinline__ void merge(float &most, float &second, float larger, float smaller)
{
    second = fmaxf(fminf(most, larger), fmaxf(second, smaller));
    most = fmaxf(most, larger);
}

// Any row: four digits of 8 bits, the largest first, with a pass over the row for each, and one to collect.
__device__ __forceinline__ void selectByDigits(const float *row, float *out, int *position, int S, unsigned K,
                                               unsigned *bins, uint4 *found, unsigned *counters)
{
    const int tid = threadIdx.x, lane = tid & 31;
    unsigned threshold = 0, need = K;
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();                        // what was there before has been read
        if (tid < 256)
            bins[tid] = 0;
        if (tid < 2)
            counters[tid] = 0;
        __syncthreads();
#pragma unroll 1
        for (int column = tid; column < S; column += THREADS) {
            const unsigned key = keyOf(row[column]);
            if (shift == 24 || (key ^ threshold) >> (shift + 8) == 0)
                atomicAdd(&bins[255 - (key >> shift & 255)], 1u);
        }
        __syncthreads();
        if (tid < 32) {
            unsigned count[8], sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                count[b] = bins[lane * 8 + b];
                sum += count[b];
            }
            unsigned running = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(ALL, running, step);
                if (lane >= step)
                    running += other;
            }
            running -= sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                if (running < need && need <= running + count[b])
                    *found = make_uint4(lane * 8 + b, running, count[b], 0);
                running += count[b];
            }
        }
        __syncthreads();
        const uint4 cut = *found;
        threshold |= (255 - cut.x) << shift;
        need -= cut.y;
    }

    // All that are larger, and as many of the equal ones as are missing.
    const unsigned sure = K - need;
#pragma unroll 1
    for (int column = tid; column < S; column += THREADS) {
        const float value = row[column];
        const unsigned key = keyOf(value);
        unsigned place = K;
        if (key > threshold)
            place = atomicAdd(&counters[0], 1u);
        else if (key == threshold)
            place = sure + atomicAdd(&counters[1], 1u);
        if (place < K) {
            out[place] = value;
            position[place] = column;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
topk(const float *__restrict__ values, float *__restrict__ topValues, int *__restrict__ indices, int S, int columnsKept)
{
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ __align__(16) uint2 chosen[THREADS + FEW + 8];   // value and column
    __shared__ __align__(16) uint4 found;       // the bin of the threshold: offset in bytes, elements before, elements
    __shared__ __align__(16) uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ unsigned counters[2];

    const unsigned K = columnsKept;
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;

    // At least K threads have elements, and groups of two of them know two elements each that are no smaller than the
    // bound. Vectors of four are aligned.
    const bool fits = ((unsigned(S) & 3u) | (unsigned(size_t(values)) & 15u)) == 0 && S <= THREADS * COUNT
                      && K <= unsigned(THREADS) && 4 * K <= unsigned(S);
    if (fits) {
        const float none = __uint_as_float(0xff800000u);        // minus infinity
        float value[COUNT];
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            value[e] = none;
#pragma unroll
        for (int v = 0; v < COUNT / 4; ++v) {
            const int column = 4 * (tid + v * THREADS);
            if (column < S) {
                const float4 four = __ldcs(reinterpret_cast<const float4 *>(row + column));
                value[4 * v] = four.x;
                value[4 * v + 1] = four.y;
                value[4 * v + 2] = four.z;
                value[4 * v + 3] = four.w;
            }
        }

        // While the loads are under way.
        *reinterpret_cast<uint2 *>(bins + 2 * tid) = make_uint2(0, 0);
        if (tid == 0)
            found = make_uint4(0, 0, ALL, 0);   // no bin found: as if it held too many

        // The two largest of each thread, then of two neighbours.
        float most = fmaxf(value[0], value[1]), second = fminf(value[0], value[1]);
        merge(most, second, fmaxf(value[2], value[3]), fminf(value[2], value[3]));
        {
            float larger = fmaxf(value[4], value[5]), smaller = fminf(value[4], value[5]);
            merge(larger, smaller, fmaxf(value[6], value[7]), fminf(value[6], value[7]));
            merge(most, second, larger, smaller);
        }
        {
            const float larger = __shfl_xor_sync(ALL, most, 1), smaller = __shfl_xor_sync(ALL, second, 1);
            merge(most, second, larger, smaller);
        }
        const unsigned mostKey = __reduce_max_sync(ALL, keyOf(most));
        const unsigned leastKey = __reduce_min_sync(ALL, 4 * (tid & ~1) < S ? keyOf(second) : ALL);
        if (lane == 0)
            spans[warp] = make_uint2(leastKey, mostKey);
        __syncthreads();

        const uint2 span = spans[lane & (WARPS - 1)];
        const float top = valueOf(__reduce_max_sync(ALL, span.y));
        const float bound = valueOf(__reduce_min_sync(ALL, span.x));
        const float scale = __fdividef(1000.0f, top - bound);
        // False as well for infinities and for what is not a number. The offset below is then exact to one bin.
        if (fabsf(top * scale) <= 2097152.0f) {
            // 2^23 + 2 + (top - value) * scale, in the range in which the last bit of the mantissa counts ones: the
            // bins are 1 to 3 for the maximum, and at most 1004 for the bound. Monotone, since it is rounded once.
            const float start = __fmaf_rn(top, scale, 8388610.0f), slope = -scale;
            const unsigned binsAt = unsigned(__cvta_generic_to_shared(bins));
            unsigned offset[COUNT], number[COUNT];
#pragma unroll
            for (int e = 0; e < COUNT; ++e) {
                // (bits - 0x4b000000) * 4, which does not exceed 32 bits for any number up to infinity
                offset[e] = __float_as_uint(__fmaf_rn(value[e], slope, start)) * 4u - 0x2c000000u;
                number[e] = 0;
            }
#pragma unroll
            for (int e = 0; e < COUNT; ++e)
                asm volatile("{\n\t"
                             ".reg .pred inside;\n\t"
                             "setp.lt.u32 inside, %1, %2;\n\t"
                             "@inside atom.shared.add.u32 %0, [%3], 1;\n\t"
                             "}"
                             : "+r"(number[e])
                             : "r"(offset[e]), "n"(4 * BINS), "r"(binsAt + offset[e])
                             : "memory");
            __syncthreads();

            // The scan over the bins, the largest elements first. The sums replace the counts.
            const uint2 mine = *reinterpret_cast<const uint2 *>(bins + 2 * tid);
            const unsigned sum = mine.x + mine.y;
            unsigned running = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(ALL, running, step);
                if (lane >= step)
                    running += other;
            }
            if (lane == 31)
                totals[warp] = running;
            __syncthreads();
            const unsigned total = totals[lane & (WARPS - 1)];
            running += __reduce_add_sync(ALL, lane < warp ? total : 0u) - sum;
            *reinterpret_cast<uint2 *>(bins + 2 * tid) = make_uint2(running, running + mine.x);
            const unsigned left = K - 1 - running;              // huge when the threshold lies before
            if (left < sum) {
                const bool later = left >= mine.x;
                found = make_uint4(8 * tid + (later ? 4 : 0), running + (later ? mine.x : 0u),
                                   later ? mine.y : mine.x, 0);
            }
            __syncthreads();

            const uint4 cut = found;
            if (cut.z <= FEW) {
                // Places of all down to the bin of the threshold, that included: all loads, then all stores.
                const unsigned chosenAt = unsigned(__cvta_generic_to_shared(chosen));
                unsigned begin[COUNT];
#pragma unroll
                for (int e = 0; e < COUNT; ++e) {
                    begin[e] = 0;
                    asm volatile("{\n\t"
                                 ".reg .pred inside;\n\t"
                                 "setp.le.u32 inside, %1, %2;\n\t"
                                 "@inside ld.shared.u32 %0, [%3];\n\t"
                                 "}"
                                 : "+r"(begin[e])
                                 : "r"(offset[e]), "r"(cut.x), "r"(binsAt + offset[e])
                                 : "memory");
                }
#pragma unroll
                for (int e = 0; e < COUNT; ++e)
                    asm volatile("{\n\t"
                                 ".reg .pred inside;\n\t"
                                 "setp.le.u32 inside, %0, %1;\n\t"
                                 "@inside st.shared.v2.b32 [%2], {%3, %4};\n\t"
                                 "}"
                                 :
                                 : "r"(offset[e]), "r"(cut.x), "r"(chosenAt + 8 * (begin[e] + number[e])),
                                   "r"(__float_as_uint(value[e])), "r"(4 * (tid + e / 4 * THREADS) + e % 4)
                                 : "memory");
                __syncthreads();

                // What lies above that bin is chosen, fewer than K <= THREADS elements.
                const unsigned before = cut.y, count = cut.z;
                if (unsigned(tid) < before) {
                    const uint2 element = chosen[tid];
                    out[tid] = __uint_as_float(element.x);
                    position[tid] = int(element.y);
                }
                // The bin itself: one thread an element, compared with all of the bin.
                const unsigned candidate = THREADS - 1 - tid;
                if (candidate < count) {
                    const uint2 element = chosen[before + candidate];
                    const float own = __uint_as_float(element.x);
                    unsigned rank = 0;
#pragma unroll 1
                    for (unsigned i = 0; i < count; i += 4) {
#pragma unroll
                        for (unsigned j = 0; j < 4; ++j) {
                            const float other = __uint_as_float(chosen[before + i + j].x);
                            const bool first = other > own || (other == own && i + j < candidate);
                            rank += i + j < count && first;
                        }
                    }
                    if (before + rank < K) {
                        out[before + rank] = own;
                        position[before + rank] = int(element.y);
                    }
                }
                return;
            }
        }
    }
    selectByDigits(row, out, position, S, K, bins, &found, counters);
}
