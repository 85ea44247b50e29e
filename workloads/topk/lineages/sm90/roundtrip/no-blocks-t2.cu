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
// One block a row. Rows of at most 4096 elements lie in registers. The least maximum of the threads bounds the K-th
// largest from below; between it and the maximum, bins that are linear in the value are counted by atomics, whose
// results number the elements of a bin. A scan over the bins gives each element its place. Only the bin of the
// threshold is ranked. Everything else, and what is too crowded for this, is selected by digits of integer keys.

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int COUNT = 8;                        // elements a thread
constexpr int BINS = 2 * THREADS;               // two a thread in the scan
constexpr unsigned FEW = 128;                   // elements in the bin of the threshold that are ranked directly
constexpr unsigned FULL = 0xffffffffu;

// Unsigned integers in the order of the floats.
static __device__ __forceinline__ unsigned keyOf(unsigned bits)
{
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

static __device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float(key ^ (unsigned(int(~key) >> 31) | 0x80000000u));
}

// Counts in a bin and returns the number before, if the bin is inside of the window. Otherwise 0.
static __device__ __forceinline__ unsigned claim(unsigned address, unsigned bin)
{
    unsigned number = 0;
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.lt.u32 inside, %2, %3;\n\t"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n\t"
                 "}"
                 : "+r"(number) : "r"(address), "r"(bin), "n"(BINS) : "memory");
    return number;
}

// Where a bin begins, or a place that is never filled if the bin is outside of the window.
static __device__ __forceinline__ unsigned beginOf(unsigned address, unsigned bin)
{
    unsigned begin = 0x80000000u;
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.lt.u32 inside, %2, %3;\n\t"
                 "@inside ld.shared.u32 %0, [%1];\n\t"
                 "}"
                 : "+r"(begin) : "r"(address), "r"(bin), "n"(BINS) : "memory");
    return begin;
}

// Stores an element at its place, if that is below the limit.
static __device__ __forceinline__ void put(unsigned address, unsigned place, unsigned limit, unsigned bits,
                                           unsigned column)
{
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.lt.u32 inside, %1, %2;\n\t"
                 "@inside st.shared.v2.u32 [%0], {%3, %4};\n\t"
                 "}"
                 : : "r"(address), "r"(place), "r"(limit), "r"(bits), "r"(column) : "memory");
}

// Any row, any K up to its length: four passes for the digits of the K-th largest key, one to collect.
static __device__ __noinline__ void selectByDigits(const float *row, float *out, int *position, int S, int K,
                                                   unsigned *bins, uint2 *found)
{
    const int tid = threadIdx.x;
    unsigned threshold = 0, need = unsigned(K);
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();                        // what the shared words held before has been read
        if (tid < 256)
            bins[tid] = 0;
        __syncthreads();
        for (int column = tid; column < S; column += THREADS) {
            const unsigned key = keyOf(__float_as_uint(row[column]));
            if (shift == 24 || ((key ^ threshold) >> (shift + 8)) == 0)
                atomicAdd(&bins[255 - ((key >> shift) & 255)], 1u);
        }
        __syncthreads();
        if (tid < 32) {
            unsigned counts[8], sum = 0;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                counts[b] = bins[8 * tid + b];
                sum += counts[b];
            }
            unsigned running = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(FULL, running, step);
                if (tid >= step)
                    running += other;
            }
            running -= sum;
#pragma unroll
            for (int b = 0; b < 8; ++b) {
                if (running < need && need <= running + counts[b])
                    *found = make_uint2(unsigned(8 * tid + b), running);
                running += counts[b];
            }
        }
        __syncthreads();
        const uint2 cut = *found;
        threshold |= (255u - cut.x) << shift;
        need -= cut.y;
    }

    // threshold is the K-th largest key, and need is how many of those equal to it are taken.
    __syncthreads();
    if (tid < 2)
        bins[tid] = 0;
    __syncthreads();
    const unsigned sure = unsigned(K) - need;
    for (int column = tid; column < S; column += THREADS) {
        const float value = row[column];
        const unsigned key = keyOf(__float_as_uint(value));
        unsigned place = FULL;
        if (key > threshold) {
            place = atomicAdd(&bins[0], 1u);
        } else if (key == threshold) {
            const unsigned number = atomicAdd(&bins[1], 1u);
            if (number < need)
                place = sure + number;
        }
        if (place < unsigned(K)) {
            out[place] = value;
            position[place] = column;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
topk(const float *__restrict__ values, float *__restrict__ topValues, int *__restrict__ indices, int S, int K)
{
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ __align__(16) uint2 chosen[THREADS + FEW];   // bits and column; K <= THREADS where it is used
    __shared__ uint2 spans[WARPS];
    __shared__ unsigned totals[WARPS];
    __shared__ uint2 found;

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;

    // Whole vectors that fit in the registers, and at least K threads with elements: their maxima are K elements.
    const int vectors = S >> 2;
    if ((S & 3) != 0 || S > THREADS * COUNT || K > min(vectors, THREADS)) {
        selectByDigits(row, out, position, S, K, bins, &found);
        return;
    }

    const float none = __uint_as_float(0xff800000u);        // -infinity
    float4 low = make_float4(none, none, none, none), high = low;
    const float4 *from = reinterpret_cast<const float4 *>(row) + tid;
    if (tid < vectors)
        low = __ldg(from);
    if (tid + THREADS < vectors)
        high = __ldg(from + THREADS);

    // While the loads are under way.
    *reinterpret_cast<uint2 *>(bins + 2 * tid) = make_uint2(0, 0);
    if (tid == 0)
        found = make_uint2(0, FULL);

    const float value[COUNT] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};

    // The window, from the least maximum of a thread to the largest.
    const float largest = fmaxf(fmaxf(fmaxf(value[0], value[1]), fmaxf(value[2], value[3])),
                                fmaxf(fmaxf(value[4], value[5]), fmaxf(value[6], value[7])));
    unsigned most = keyOf(__float_as_uint(largest));
    unsigned least = tid < vectors ? most : FULL;           // a thread without elements has no say
    least = __reduce_min_sync(FULL, least);
    most = __reduce_max_sync(FULL, most);
    if (lane == 0)
        spans[warp] = make_uint2(least, most);
    __syncthreads();
    const uint2 span = spans[lane & (WARPS - 1)];
    const float bound = valueOf(__reduce_min_sync(FULL, span.x));
    const float top = valueOf(__reduce_max_sync(FULL, span.y));
    const float range = top - bound;
    if (!(range > 1e-30f && range < 1e30f)) {               // also infinities; the same in all threads
        selectByDigits(row, out, position, S, K, bins, &found);
        return;
    }
    const float scale = __fdividef(float(BINS - 1), range);

    // Bins are monotone in the value, as each rounding is. Adding 2^23 rounds to an integer in the low bits of the
    // float; whatever is too large, infinity too, comes out as a number above all bins. All that is no less than the
    // bound is at most in the bin BINS - 1.
    const unsigned binsAt = unsigned(__cvta_generic_to_shared(bins));
    unsigned bin[COUNT], place[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        bin[e] = __float_as_uint(__fmaf_rn(__fsub_rn(top, value[e]), scale, 8388608.0f)) - 0x4b000000u;
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        place[e] = claim(binsAt + 4 * bin[e], bin[e]);
    __syncthreads();

    // The scan over the bins, the largest values first.
    const uint2 counts = *reinterpret_cast<const uint2 *>(bins + 2 * tid);
    const unsigned sum = counts.x + counts.y;
    unsigned running = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(FULL, running, step);
        if (lane >= step)
            running += other;
    }
    if (lane == 31)
        totals[warp] = running;
    __syncthreads();
    const unsigned total = totals[lane & (WARPS - 1)];
    running += __reduce_add_sync(FULL, lane < warp ? total : 0u) - sum;
    const unsigned next = running + counts.x;
    *reinterpret_cast<uint2 *>(bins + 2 * tid) = make_uint2(running, next);
    const unsigned wanted = unsigned(K) - 1;                // one comparison for begin <= wanted < begin + count
    if (wanted - running < counts.x)
        found = make_uint2(running, counts.x);
    if (wanted - next < counts.y)
        found = make_uint2(next, counts.y);
    __syncthreads();

    // Places; those of the bins behind that of the threshold are beyond the limit.
    const uint2 cut = found;
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        place[e] += beginOf(binsAt + 4 * bin[e], bin[e]);
    if (cut.y > FEW) {                                      // the same in all threads
        selectByDigits(row, out, position, S, K, bins, &found);
        return;
    }
    const unsigned sure = cut.x, count = cut.y, need = unsigned(K) - sure, limit = sure + count;
    const unsigned chosenAt = unsigned(__cvta_generic_to_shared(chosen));
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        put(chosenAt + 8 * place[e], place[e], limit, __float_as_uint(value[e]),
            unsigned(4 * (tid + e / 4 * THREADS) + e % 4));
    __syncthreads();

    // The bins before that of the threshold: fewer than K <= THREADS elements.
    if (unsigned(tid) < sure) {
        const uint2 element = chosen[tid];
        out[tid] = __uint_as_float(element.x);
        position[tid] = int(element.y);
    }

    // The bin of the threshold: a warp ranks one of its elements at a time.
#pragma unroll 1
    for (unsigned i = warp; i < count; i += WARPS) {
        const uint2 element = chosen[sure + i];
        const unsigned mine = keyOf(element.x);
        unsigned rank = 0;
#pragma unroll 1
        for (unsigned begin = 0; begin < count; begin += 32) {
            const unsigned j = begin + lane;
            const unsigned other = j < count ? keyOf(chosen[sure + j].x) : 0u;
            rank += __popc(__ballot_sync(FULL, j < count && (other > mine || (other == mine && j < i))));
        }
        if (lane == 0 && rank < need) {
            out[sure + rank] = __uint_as_float(element.x);
            position[sure + rank] = int(element.y);
        }
    }
}
