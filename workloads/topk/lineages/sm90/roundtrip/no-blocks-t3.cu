/*klineage
surface = "cuda"

[[launch]]
kernel = "topkFast"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
when = "S % 4 == 0 && S <= 4096 && K <= 512 && 4 * K <= S"

[[launch]]
kernel = "topkAny"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
when = "S % 4 != 0 || S > 4096 || K > 512 || 4 * K > S"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order. One block a row.

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int COUNT = 8;                    // elements a thread of the fast kernel
constexpr int BINS = 1024;                  // two a thread
constexpr int MOST = 512;                   // the largest K of the fast kernel: two of each of 256 groups
constexpr unsigned FEW = 256;               // candidates in the bin of the threshold that are ranked directly
constexpr unsigned FAR = 0x40000000u;       // a place that is never filled
constexpr unsigned ALL = 0xffffffffu;

// Unsigned integers in the order of the floats, and back.
static __device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

static __device__ __forceinline__ float valueOf(unsigned key)
{
    return __uint_as_float((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}

// Exact for all rows: bisection over the bits of the K-th largest key. All threads of the block enter together.
static __device__ __forceinline__ void selectByBits(const float *row, float *out, int *position, int S, int K,
                                                    unsigned *counts, unsigned *places)
{
    const int tid = threadIdx.x;
    if (tid < 32)
        counts[tid] = 0;
    if (tid < 2)
        places[tid] = 0;
    __syncthreads();

    unsigned threshold = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned trial = threshold | (1u << bit);
        unsigned count = 0;
#pragma unroll 4
        for (int column = tid; column < S; column += THREADS)
            count += keyOf(row[column]) >= trial ? 1u : 0u;
        __syncwarp();
        count = __reduce_add_sync(ALL, count);
        if ((tid & 31) == 0)
            atomicAdd(&counts[bit], count);
        __syncthreads();                    // one a bit, since each bit has its own counter
        if (counts[bit] >= unsigned(K))
            threshold = trial;
    }

#pragma unroll 1
    for (int column = tid; column < S; column += THREADS) {
        const float value = row[column];
        if (keyOf(value) > threshold) {     // fewer than K
            const unsigned place = atomicAdd(&places[0], 1u);
            out[place] = value;
            position[place] = column;
        }
    }
    __syncthreads();
    const unsigned above = places[0];
#pragma unroll 1
    for (int column = tid; column < S; column += THREADS) {
        const float value = row[column];
        if (keyOf(value) == threshold) {    // as many of the equal ones as are missing
            const unsigned place = above + atomicAdd(&places[1], 1u);
            if (place < unsigned(K)) {
                out[place] = value;
                position[place] = column;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(512) topkAny(const float *values, float *topValues, int *indices, int S, int K)
{
    __shared__ unsigned counts[32];
    __shared__ unsigned places[2];
    selectByBits(values + size_t(blockIdx.x) * S, topValues + size_t(blockIdx.x) * K, indices + size_t(blockIdx.x) * K,
                 S, K, counts, places);
}

// The two largest of two disjoint sets, of each of which the two largest are known.
static __device__ __forceinline__ void merge(float &most, float &second, float larger, float smaller)
{
    second = fmaxf(fminf(most, larger), fmaxf(second, smaller));
    most = fmaxf(most, larger);
}

// The two largest of four.
static __device__ __forceinline__ void twoOf(const float *x, float &most, float &second)
{
    most = fmaxf(x[0], x[1]);
    second = fminf(x[0], x[1]);
    merge(most, second, fmaxf(x[2], x[3]), fminf(x[2], x[3]));
}

// Four floats where column < columns; unchanged otherwise.
static __device__ __forceinline__ void load(float *x, const float *from, int column, int columns)
{
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.lt.s32 inside, %5, %6;\n\t"
                 "@inside ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];\n\t"
                 "}"
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
                 : "l"(from), "r"(column), "r"(columns));
}

// Counts in the bin at `address` where d <= last, and gives the number before.
static __device__ __forceinline__ void claim(unsigned &number, unsigned address, float d, float last)
{
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.le.f32 inside, %2, %3;\n\t"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n\t"
                 "}"
                 : "+r"(number)
                 : "r"(address), "f"(d), "f"(last)
                 : "memory");
}

// Reads the word at `address` where d <= last.
static __device__ __forceinline__ void look(unsigned &word, unsigned address, float d, float last)
{
    asm volatile("{\n\t"
                 ".reg .pred inside;\n\t"
                 "setp.le.f32 inside, %2, %3;\n\t"
                 "@inside ld.shared.u32 %0, [%1];\n\t"
                 "}"
                 : "+r"(word)
                 : "r"(address), "f"(d), "f"(last)
                 : "memory");
}

// S is a multiple of 4 and at most 4096, 4 * K <= S.
extern "C" __global__ void __launch_bounds__(512, 1) topkFast(const float *values, float *topValues, int *indices, int S,
                                                              int K)
{
    __shared__ __align__(16) unsigned bins[BINS];
    __shared__ __align__(16) unsigned found[4];     // bin of the threshold, number before it, number in it
    __shared__ __align__(16) unsigned span[2];      // least and largest key of the window
    __shared__ unsigned bases[WARPS];
    __shared__ float listValues[MOST + FEW + 4];
    __shared__ int listColumns[MOST + FEW + 4];
    __shared__ unsigned counts[32];
    __shared__ unsigned places[2];

    const int tid = threadIdx.x;
    const int lane = tid & 31;
    const int warp = tid >> 5;
    const float *row = values + size_t(blockIdx.x) * S;
    float *out = topValues + size_t(blockIdx.x) * K;
    int *position = indices + size_t(blockIdx.x) * K;

    float x[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        x[e] = __uint_as_float(0xff800000u);        // -infinity: outside of each window
    load(x, row + 4 * tid, 4 * tid, S);
    load(x + 4, row + 4 * (tid + THREADS), 4 * (tid + THREADS), S);

    // While the loads are under way.
    uint2 *mine = reinterpret_cast<uint2 *>(bins) + tid;
    *mine = make_uint2(0u, 0u);
    if (tid < WARPS)
        bases[tid] = 0;
    if (tid == 0) {
        span[0] = ALL;
        span[1] = 0;
        found[0] = 0;
        found[1] = 0;
        found[2] = ALL;                             // not found: left to the exact way
        found[3] = 0;
    }
    __syncthreads();

    // The least second largest of the groups of 16 is no larger than the K-th largest: there are at least
    // min(256, S / 8) groups with elements, each of at least 4, and 2 * that is at least K.
    float most, second, larger, smaller;
    twoOf(x, most, second);
    twoOf(x + 4, larger, smaller);
    merge(most, second, larger, smaller);
    larger = __shfl_xor_sync(ALL, most, 1);
    smaller = __shfl_xor_sync(ALL, second, 1);
    merge(most, second, larger, smaller);
    unsigned low = 4 * (tid & ~1) < S ? keyOf(second) : ALL;    // an empty group has no say
    unsigned high = keyOf(most);
    low = __reduce_min_sync(ALL, low);
    high = __reduce_max_sync(ALL, high);
    if (lane == 0) {
        atomicMin(&span[0], low);
        atomicMax(&span[1], high);
    }
    __syncthreads();

    // d(x) = c - x * scale, rounded to an integer between 2^23 and 2^24, whose bits count the bins: monotone in x.
    const uint2 window = *reinterpret_cast<const uint2 *>(span);
    const float lo = valueOf(window.x), hi = valueOf(window.y);
    const float scale = __fdividef(float(BINS - 2), hi - lo);
    const float c = fmaf(hi, scale, 12582912.0f);
    const float lastD = fmaf(lo, -scale, c);
    const unsigned first = __float_as_uint(fmaf(hi, -scale, c)), last = __float_as_uint(lastD);
    if ((first >> 23) != 150u || (last >> 23) != 150u || last - first >= unsigned(BINS)) {
        selectByBits(row, out, position, S, K, counts, places);
        return;
    }

    const unsigned origin = unsigned(__cvta_generic_to_shared(bins)) - 4u * first;
    float d[COUNT];
    unsigned address[COUNT], number[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e) {
        d[e] = fmaf(x[e], -scale, c);
        address[e] = __float_as_uint(d[e]) * 4u + origin;
        number[e] = 0;
    }
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        claim(number[e], address[e], d[e], lastD);
    __syncthreads();

    // Sums of the bins before each, the largest elements first.
    const uint2 count = *mine;
    const unsigned sum = count.x + count.y;
    const unsigned total = __reduce_add_sync(ALL, sum);
    if (lane > warp && lane < WARPS)
        atomicAdd(&bases[lane], total);
    unsigned running = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(ALL, running, step);
        running += lane >= step ? other : 0u;
    }
    running -= sum;
    __syncthreads();
    running += bases[warp];
    const unsigned next = running + count.x;
    *mine = make_uint2(running, next);
    const unsigned wanted = unsigned(K) - 1u;
    if (wanted - running < count.x)                 // running < K <= running + count.x
        *reinterpret_cast<uint4 *>(found) = make_uint4(2u * tid, running, count.x, 0u);
    if (wanted - next < count.y)
        *reinterpret_cast<uint4 *>(found) = make_uint4(2u * tid + 1u, next, count.y, 0u);
    __syncthreads();

    const uint4 cut = *reinterpret_cast<const uint4 *>(found);
    if (cut.z > FEW) {
        selectByBits(row, out, position, S, K, counts, places);
        return;
    }

    // Stage all down to the bin of the threshold, that one whole.
    const unsigned limit = cut.y + cut.z;
    const float cutD = __uint_as_float(first + cut.x);
    unsigned begin[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        begin[e] = FAR;
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        look(begin[e], address[e], d[e], cutD);
#pragma unroll
    for (int e = 0; e < COUNT; ++e) {
        const unsigned place = begin[e] + number[e];
        if (place < limit) {
            listValues[place] = x[e];
            listColumns[place] = 4 * (tid + e / 4 * THREADS) + e % 4;
        }
    }
    __syncthreads();

    // Copy what is sure, at most one a thread.
    const bool settled = limit == unsigned(K);
    const unsigned sure = settled ? unsigned(K) : cut.y;
    if (unsigned(tid) < sure) {
        out[tid] = listValues[tid];
        position[tid] = listColumns[tid];
    }

    // Rank the rest, one thread a candidate.
    const unsigned candidate = unsigned(THREADS - 1 - tid);
    if (!settled && candidate < cut.z) {
        const float *list = listValues + cut.y;
        const float element = list[candidate];
        const int column = listColumns[cut.y + candidate];
        unsigned rank = 0;
#pragma unroll 1
        for (unsigned j = 0; j < cut.z; j += 4) {
            float other[4];
#pragma unroll
            for (unsigned near = 0; near < 4; ++near)
                other[near] = list[j + near];
#pragma unroll
            for (unsigned near = 0; near < 4; ++near)
                rank += j + near < cut.z
                                && (other[near] > element || (other[near] == element && j + near < candidate))
                            ? 1u
                            : 0u;
        }
        if (rank < unsigned(K) - cut.y) {
            out[cut.y + rank] = element;
            position[cut.y + rank] = column;
        }
    }
}
